//! The columns of each kind, after those that `kubectl get` shows for a Kubernetes cluster.

use super::age::age;
use super::{pod, print};
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::resource::{CustomColumn, Resource};
use serde_json::{Value, json};

/// A column: its name, whether it needs `-o wide`, and what is in it.
struct Column {
    name: String,
    /// `string`, `integer`, `boolean`, `date` ...
    kind: String,
    format: &'static str,
    /// 0 is always shown, more with `-o wide`.
    priority: i32,
    cell: Cell,
}

enum Cell {
    Fixed(fn(&Document) -> Value),
    Custom(CustomColumn),
}

/// The columns of a kind.
pub(in crate::apiserver) struct Columns(Vec<Column>);

impl Columns {
    pub(super) fn definitions(&self) -> Value {
        let definition = |c: &Column| json!({"name": c.name, "type": c.kind, "format": c.format, "description": "", "priority": c.priority});
        self.0.iter().map(definition).collect()
    }

    pub(super) fn cells(&self, object: &Document) -> Vec<Value> {
        let cell = |c: &Column| match &c.cell {
            Cell::Fixed(cell) => cell(object),
            Cell::Custom(column) => custom(column, object),
        };
        self.0.iter().map(cell).collect()
    }
}

/// The columns of a kind.
pub(in crate::apiserver) fn columns(resource: &Resource) -> Columns {
    let own = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => vec![
            text("Ready", |o| json!(pod::ready(o))),
            text("Status", |o| json!(pod::status(o))),
            text("Restarts", |o| json!(pod::restarts(o, jiff::Timestamp::now()))),
            text("Age", age_cell),
            wide("IP", |o| print::text(o, "/status/podIP")),
            wide("Node", |o| print::text(o, "/spec/nodeName")),
            wide("Nominated Node", |o| print::text(o, "/status/nominatedNodeName")),
            wide("Readiness Gates", |_| json!("<none>")),
        ],
        ("", "namespaces") => {
            vec![text("Status", |o| print::text(o, "/status/phase")), text("Age", age_cell)]
        }
        ("", "nodes") => vec![
            text("Status", print::node_status),
            text("Roles", print::node_roles),
            text("Age", age_cell),
            text("Version", |o| print::text(o, "/status/nodeInfo/kubeletVersion")),
            wide("Internal-IP", print::node_address),
            wide("OS-Image", |o| print::text(o, "/status/nodeInfo/osImage")),
            wide("Kernel-Version", |o| print::text(o, "/status/nodeInfo/kernelVersion")),
            wide("Container-Runtime", |o| print::text(o, "/status/nodeInfo/containerRuntimeVersion")),
        ],
        ("", "events") => return Columns(event_columns()),
        ("", "configmaps") => {
            vec![text("Data", |o| print::count(o, &["data", "binaryData"])), text("Age", age_cell)]
        }
        ("", "secrets") => vec![
            text("Type", |o| print::text(o, "/type")),
            text("Data", |o| print::count(o, &["data"])),
            text("Age", age_cell),
        ],
        ("", "serviceaccounts") => {
            vec![text("Secrets", |o| print::count(o, &["secrets"])), text("Age", age_cell)]
        }
        ("", "services") => vec![
            text("Type", |o| print::text(o, "/spec/type")),
            text("Cluster-IP", |o| print::text(o, "/spec/clusterIP")),
            text("External-IP", |_| json!("<none>")),
            text("Port(s)", print::service_ports),
            text("Age", age_cell),
            wide("Selector", |o| print::labels(o, "/spec/selector")),
        ],
        ("", "persistentvolumeclaims") => vec![
            text("Status", |o| print::text(o, "/status/phase")),
            text("Volume", |o| print::text_or(o, "/spec/volumeName", "")),
            text("Capacity", |o| print::text_or(o, "/status/capacity/storage", "")),
            text("Access Modes", print::access_modes),
            text("StorageClass", |o| print::text_or(o, "/spec/storageClassName", "")),
            text("Age", age_cell),
            wide("VolumeMode", |o| print::text(o, "/spec/volumeMode")),
        ],
        ("", "resourcequotas") => vec![
            text("Request", |o| json!(print::quota(o, false))),
            text("Limit", |o| json!(print::quota(o, true))),
            text("Age", age_cell),
        ],
        ("networking.k8s.io", "networkpolicies") => {
            vec![
                text("Pod-Selector", |o| print::labels(o, "/spec/podSelector/matchLabels")),
                text("Age", age_cell),
            ]
        }
        ("coordination.k8s.io", "leases") => {
            vec![text("Holder", |o| print::text_or(o, "/spec/holderIdentity", "")), text("Age", age_cell)]
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            vec![text("Created At", |o| print::text(o, "/metadata/creationTimestamp"))]
        }
        _ if !resource.columns.is_empty() => resource.columns.iter().cloned().map(of_definition).collect(),
        _ => vec![text("Age", age_cell)],
    };
    let name = Column { format: "name", ..text("Name", |o| json!(metadata::name(o))) };
    Columns(std::iter::once(name).chain(own).collect())
}

fn event_columns() -> Vec<Column> {
    vec![
        text("Last Seen", print::last_seen),
        text("Type", |o| print::text(o, "/type")),
        text("Reason", |o| print::text(o, "/reason")),
        text("Object", print::involved),
        wide("Source", print::source),
        text("Message", |o| print::text_or(o, "/message", "")),
        wide("Count", |o| print::text_or(o, "/count", "1")),
        Column { format: "name", ..wide("Name", |o| json!(metadata::name(o))) },
    ]
}

fn text(name: &str, cell: fn(&Document) -> Value) -> Column {
    Column {
        name: name.to_owned(),
        kind: "string".to_owned(),
        format: "",
        priority: 0,
        cell: Cell::Fixed(cell),
    }
}

fn wide(name: &str, cell: fn(&Document) -> Value) -> Column {
    Column { priority: 1, ..text(name, cell) }
}

fn of_definition(column: CustomColumn) -> Column {
    Column {
        name: column.name.clone(),
        kind: column.kind.clone(),
        format: "",
        priority: column.priority,
        cell: Cell::Custom(column),
    }
}

fn age_cell(object: &Document) -> Value {
    json!(since(metadata::text(object, "creationTimestamp")))
}

/// How long ago the time was, `<unknown>` when there is none.
pub(super) fn since(time: &str) -> String {
    time.parse().map_or_else(|_| "<unknown>".to_owned(), |time| age(time, jiff::Timestamp::now()))
}

fn custom(column: &CustomColumn, object: &Document) -> Value {
    let pointer = column.path.replace('.', "/");
    match (print::at(object, &pointer), column.kind.as_str()) {
        (None, _) => Value::Null,
        (Some(value), "date") => json!(since(value.as_str().unwrap_or_default())),
        (Some(value @ Value::String(_)), _) => value.clone(),
        (Some(value), "string") => json!(value.to_string()),
        (Some(value), _) => value.clone(),
    }
}
