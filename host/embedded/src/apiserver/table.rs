//! Objects as rows for humans: the `Table` of `meta.k8s.io/v1` that `kubectl get` prints.

use super::metadata::{Document, at, is_deleting};
use super::resource::{CustomColumn, Resource};
use super::store::Object;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, PodSpec, PodStatus};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Creates a table of rows. In a watch, only the first table states its columns.
pub(super) fn table(columns: &[Column], rows: &[Value], metadata: &Value) -> Value {
    let definition = |c: &Column| {
        let format = if c.name == "Name" { "name" } else { "" };
        json!({"name": c.name, "type": c.kind, "format": format, "description": "", "priority": c.priority})
    };
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": metadata,
        "columnDefinitions": columns.iter().map(definition).collect::<Value>(),
        "rows": rows,
    })
}

/// Creates the row of an object. It carries the `whole` object, or only its metadata.
pub(super) fn row(columns: &[Column], object: &Object, whole: bool) -> Value {
    let document = object.document();
    let cells: Vec<_> = columns.iter().map(|column| column.cell(document)).collect();
    let object = if whole { json!(document) } else { partial(document.get("metadata")) };
    json!({"cells": cells, "object": object})
}

/// Creates a `PartialObjectMetadata` with the metadata of an object.
pub(super) fn partial(metadata: Option<&Value>) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata})
}

pub(super) struct Column {
    name: String,
    /// The type of the values: `string`, `integer`, `boolean`, `date` ...
    kind: String,
    /// 0 if the column is always shown; a higher value if it is only shown with `-o wide`.
    priority: i32,
    cell: Cell,
}

enum Cell {
    /// The value at a simple JSON path, such as `.status.phase`.
    Path(String),
    Of(fn(&Document) -> String),
}

impl Column {
    fn new(name: &str, kind: &str, path: &str) -> Self {
        let cell = Cell::Path(path.to_owned());
        Self { name: name.to_owned(), kind: kind.to_owned(), priority: 0, cell }
    }

    fn computed(name: &str, cell: fn(&Document) -> String) -> Self {
        Self { cell: Cell::Of(cell), ..Self::new(name, "string", "") }
    }

    fn of_definition(custom: &CustomColumn) -> Self {
        let kind = if custom.kind == "string" { "" } else { &custom.kind };
        Self { priority: custom.priority, ..Self::new(&custom.name, kind, &custom.path) }
    }

    fn cell(&self, object: &Document) -> Value {
        let path = match &self.cell {
            Cell::Of(cell) => return json!(cell(object)),
            Cell::Path(path) => path.replace('.', "/"),
        };
        match (at(object, &path), self.kind.as_str()) {
            (None, "string") => json!("<none>"),
            (None, _) => Value::Null,
            (Some(value), "date") => json!(age(value.as_str().unwrap_or_default())),
            (Some(value), _) => value.clone(),
        }
    }
}

/// Returns the columns of a kind, after those that `kubectl get` shows for a Kubernetes cluster.
pub(super) fn columns(resource: &Resource) -> Vec<Column> {
    let age = || Column::new("Age", "date", ".metadata.creationTimestamp");
    let text = |name: &str, path: &str| Column::new(name, "string", path);
    let wide = |name: &str, path: &str| Column { priority: 1, ..text(name, path) };
    let own = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => vec![
            Column::computed("Ready", pod_ready),
            Column::computed("Status", pod_status),
            Column::computed("Restarts", pod_restarts),
            age(),
            wide("IP", ".status.podIP"),
            wide("Node", ".spec.nodeName"),
        ],
        ("", "namespaces" | "persistentvolumeclaims") => vec![text("Status", ".status.phase"), age()],
        ("", "events") => vec![
            Column::new("Last Seen", "date", ".lastTimestamp"),
            text("Type", ".type"),
            text("Reason", ".reason"),
            text("Object", ".involvedObject.name"),
            text("Message", ".message"),
        ],
        _ if !resource.columns.is_empty() => resource.columns.iter().map(Column::of_definition).collect(),
        _ => vec![age()],
    };
    std::iter::once(text("Name", ".metadata.name")).chain(own).collect()
}

/// Formats the time since `time` as `5s`, `3m`, `7h` or `12d`; `<unknown>` if there is no time.
fn age(time: &str) -> String {
    let Ok(since) = time.parse::<Timestamp>() else { return "<unknown>".to_owned() };
    let seconds = Timestamp::now().as_second().saturating_sub(since.as_second()).max(0);
    match seconds {
        ..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Reads a part of a pod. Pods are stored in their kind's form, so the part can be decoded.
fn part<T: DeserializeOwned + Default>(pod: &Document, name: &str) -> T {
    pod.get(name).and_then(|part| T::deserialize(part).ok()).unwrap_or_default()
}

/// Returns the number of ready containers and that of all, as `1/2`.
fn pod_ready(pod: &Document) -> String {
    let status: PodStatus = part(pod, "status");
    let ready = status.container_statuses.iter().flatten().filter(|container| container.ready).count();
    format!("{ready}/{}", part::<PodSpec>(pod, "spec").containers.len())
}

fn pod_restarts(pod: &Document) -> String {
    let status: PodStatus = part(pod, "status");
    status.container_statuses.iter().flatten().map(|c| c.restart_count).sum::<i32>().to_string()
}

/// Returns the most informative single word for the pod's state.
fn pod_status(pod: &Document) -> String {
    if is_deleting(pod) {
        return "Terminating".to_owned();
    }
    let status: PodStatus = part(pod, "status");
    let total = part::<PodSpec>(pod, "spec").init_containers.unwrap_or_default().len();
    for (number, container) in status.init_container_statuses.iter().flatten().enumerate() {
        match reason(container) {
            Some(reason) if reason == "Completed" => {}
            Some(reason) if reason != "PodInitializing" => return format!("Init:{reason}"),
            _ => return format!("Init:{number}/{total}"),
        }
    }
    let of_containers = status.container_statuses.iter().flatten().find_map(reason);
    of_containers.or(status.reason).or(status.phase).unwrap_or_else(|| "Unknown".to_owned())
}

/// Returns the reason for which a container waits or has ended.
fn reason(container: &ContainerStatus) -> Option<String> {
    let state = container.state.as_ref()?;
    if let Some(waiting) = &state.waiting {
        return waiting.reason.clone();
    }
    state.terminated.as_ref()?.reason.clone()
}
