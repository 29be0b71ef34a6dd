//! Objects as rows for humans: the `Table` of `meta.k8s.io/v1` that `kubectl get` prints.

use super::metadata::{Document, at, is_deleting};
use super::resource::{CustomColumn, Resource};
use super::store::Object;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, PodSpec, PodStatus};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

/// What the rows of a table carry of their objects (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    Nothing,
    Metadata,
    Object,
}

pub(super) fn partial(object: &Object) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": object.document().get("metadata"),
    })
}

/// A table of rows. Of a watch only the first table states its columns.
pub(super) fn table(columns: Option<&Columns>, rows: &[Value], metadata: &Value) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": metadata,
        "columnDefinitions": columns.map_or_else(|| json!([]), Columns::definitions),
        "rows": rows,
    })
}

pub(super) fn row(columns: &Columns, object: &Arc<Object>, include: Include) -> Value {
    let cells: Vec<_> = columns.0.iter().map(|column| column.cell(object.document())).collect();
    let mut row = json!({"cells": cells});
    match include {
        Include::Nothing => {}
        Include::Metadata => row["object"] = partial(object),
        Include::Object => row["object"] = json!(object.document()),
    }
    row
}

pub(super) struct Columns(Vec<Column>);

struct Column {
    name: String,
    /// `string`, `integer`, `boolean`, `date` ...
    kind: String,
    /// 0 is always shown, more with `-o wide`.
    priority: i32,
    cell: Cell,
}

enum Cell {
    /// The value at a simple JSON path, `.status.phase`.
    Path(String),
    Of(fn(&Document) -> String),
}

impl Columns {
    fn definitions(&self) -> Value {
        let definition = |c: &Column| {
            let format = if c.name == "Name" { "name" } else { "" };
            json!({"name": c.name, "type": c.kind, "format": format, "description": "", "priority": c.priority})
        };
        self.0.iter().map(definition).collect()
    }
}

impl Column {
    fn cell(&self, object: &Document) -> Value {
        let path = match &self.cell {
            Cell::Of(cell) => return json!(cell(object)),
            Cell::Path(path) => path.replace('.', "/"),
        };
        match (at(object, &path), self.kind.as_str()) {
            (None, "string") => json!("<none>"),
            (None, _) => Value::Null,
            (Some(value), "date") => json!(age(value.as_str().unwrap_or_default())),
            (Some(value @ Value::String(_)), _) => value.clone(),
            (Some(value), "string") => json!(value.to_string()),
            (Some(value), _) => value.clone(),
        }
    }
}

/// The columns of a kind, after those that `kubectl get` shows for a Kubernetes cluster.
pub(super) fn columns(resource: &Resource) -> Columns {
    let age = || column("Age", "date", ".metadata.creationTimestamp");
    let text = |name: &str, path: &str| column(name, "string", path);
    let wide = |name: &str, path: &str| Column { priority: 1, ..column(name, "string", path) };
    let mut own = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => vec![
            computed("Ready", pod_ready),
            computed("Status", pod_status),
            computed("Restarts", pod_restarts),
            age(),
            wide("IP", ".status.podIP"),
            wide("Node", ".spec.nodeName"),
            wide("Nominated Node", ".status.nominatedNodeName"),
        ],
        ("", "namespaces" | "persistentvolumeclaims") => vec![text("Status", ".status.phase"), age()],
        ("", "nodes") => vec![computed("Status", node_status), age()],
        ("", "events") => vec![
            computed("Last Seen", last_seen),
            text("Type", ".type"),
            text("Reason", ".reason"),
            computed("Object", involved),
            text("Message", ".message"),
        ],
        ("", "configmaps") => vec![computed("Data", entries), age()],
        ("", "secrets") => vec![text("Type", ".type"), computed("Data", entries), age()],
        _ if !resource.columns.is_empty() => resource.columns.iter().map(of_definition).collect(),
        _ => vec![age()],
    };
    own.insert(0, text("Name", ".metadata.name"));
    Columns(own)
}

fn column(name: &str, kind: &str, path: &str) -> Column {
    Column { name: name.to_owned(), kind: kind.to_owned(), priority: 0, cell: Cell::Path(path.to_owned()) }
}

fn computed(name: &str, cell: fn(&Document) -> String) -> Column {
    Column { cell: Cell::Of(cell), ..column(name, "string", "") }
}

fn of_definition(custom: &CustomColumn) -> Column {
    let kind = if custom.kind == "string" { "" } else { &custom.kind };
    Column { priority: custom.priority, ..column(&custom.name, kind, &custom.path) }
}

/// How many entries a `ConfigMap` or Secret has.
fn entries(object: &Document) -> String {
    let maps = ["data", "binaryData"].into_iter().filter_map(|member| object.get(member)?.as_object());
    maps.map(serde_json::Map::len).sum::<usize>().to_string()
}

fn node_status(node: &Document) -> String {
    let conditions = at(node, "/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    let ready = ready.is_some_and(|condition| condition["status"] == "True");
    if ready { "Ready" } else { "NotReady" }.to_owned()
}

fn last_seen(event: &Document) -> String {
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    age(times.iter().find_map(|path| at(event, path)?.as_str()).unwrap_or_default())
}

fn involved(event: &Document) -> String {
    let text = |path| at(event, path).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", text("/involvedObject/kind").to_lowercase(), text("/involvedObject/name"))
}

/// How long ago the time was: `5s`, `3m`, `7h` or `12d`; `<unknown>` when there is none.
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

/// A part of a pod. Pods are stored in their kind's form, so it can be read.
fn part<T: DeserializeOwned + Default>(pod: &Document, name: &str) -> T {
    pod.get(name).and_then(|part| T::deserialize(part).ok()).unwrap_or_default()
}

/// `1/2`: containers that are ready, and all of them.
fn pod_ready(pod: &Document) -> String {
    let status: PodStatus = part(pod, "status");
    let ready = status.container_statuses.iter().flatten().filter(|container| container.ready).count();
    format!("{ready}/{}", part::<PodSpec>(pod, "spec").containers.len())
}

fn pod_restarts(pod: &Document) -> String {
    let status: PodStatus = part(pod, "status");
    status.container_statuses.iter().flatten().map(|c| c.restart_count).sum::<i32>().to_string()
}

/// The one word that says most about the pod's state.
fn pod_status(pod: &Document) -> String {
    if is_deleting(pod) {
        return "Terminating".to_owned();
    }
    let status: PodStatus = part(pod, "status");
    let init = status.init_container_statuses.iter().flatten().enumerate();
    let total = part::<PodSpec>(pod, "spec").init_containers.unwrap_or_default().len();
    for (number, container) in init {
        match reason(container) {
            Some(reason) if reason == "Completed" => {}
            Some(reason) if reason != "PodInitializing" => return format!("Init:{reason}"),
            _ => return format!("Init:{number}/{total}"),
        }
    }
    let of_containers = status.container_statuses.iter().flatten().find_map(reason);
    of_containers.or(status.reason).or(status.phase).unwrap_or_else(|| "Unknown".to_owned())
}

/// Why a container waits or how it has ended.
fn reason(container: &ContainerStatus) -> Option<String> {
    let state = container.state.as_ref()?;
    if let Some(waiting) = &state.waiting {
        return waiting.reason.clone();
    }
    let end = state.terminated.as_ref()?;
    Some(end.reason.clone().unwrap_or_else(|| format!("ExitCode:{}", end.exit_code)))
}

#[cfg(test)]
mod tests {
    use super::{pod_ready, pod_status};
    use serde_json::{Value, json};

    #[test]
    fn the_status_is_what_kubectl_shows() {
        let container = |state: Value| json!({"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": state});
        let of = |state: Value| json!({"phase": "Running", "containerStatuses": [container(state)]});
        for (status, expected) in [
            (json!({"phase": "Pending"}), "Pending"),
            (json!({"phase": "Failed", "reason": "Evicted"}), "Evicted"),
            (of(json!({"waiting": {"reason": "ImagePullBackOff"}})), "ImagePullBackOff"),
            (of(json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})), "OOMKilled"),
            (of(json!({"running": {}})), "Running"),
            (
                json!({"phase": "Pending", "initContainerStatuses": [
                    container(json!({"terminated": {"exitCode": 0, "reason": "Completed"}})),
                    container(json!({"running": {}}))]}),
                "Init:1/2",
            ),
        ] {
            let spec =
                json!({"containers": [{"name": "c"}], "initContainers": [{"name": "a"}, {"name": "b"}]});
            let pod = json!({"spec": spec, "status": status});
            let pod = pod.as_object().unwrap();
            assert_eq!(pod_status(pod), expected, "{status}");
            assert!(pod_ready(pod).ends_with("/1"));
        }
    }
}
