//! Objects as rows for humans: the `Table` of `meta.k8s.io/v1` that `kubectl get` prints.

use super::age::age;
use super::metadata::{Document, at};
use super::resource::{CustomColumn, Resource};
use super::store::Object;
use super::table_pod as pod;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// What the rows of a table carry of their objects (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// The metadata of an object.
pub(super) fn partial(object: &Object) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": object.document().get("metadata"),
    })
}

/// A table of rows; the first one of a watch, and every other, states its columns.
pub(super) fn table(
    columns: Option<&Columns>,
    rows: &[Value],
    revision: &str,
    next: Option<&str>,
    remaining: Option<usize>,
) -> Value {
    let mut table = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "Table",
        "metadata": {"resourceVersion": revision},
        "columnDefinitions": columns.map_or_else(|| json!([]), Columns::definitions),
        "rows": rows,
    });
    if let Some(next) = next {
        table["metadata"]["continue"] = json!(next);
    }
    if let Some(remaining) = remaining {
        table["metadata"]["remainingItemCount"] = json!(remaining);
    }
    table
}

/// The row of an object.
pub(super) fn row(columns: &Columns, object: &Arc<Object>, include: Include) -> Value {
    let mut row = json!({"cells": columns.cells(object.document())});
    match include {
        Include::Nothing => {}
        Include::Metadata => row["object"] = partial(object),
        Include::Object => row["object"] = json!(object.document()),
    }
    row
}

/// The columns of a kind.
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
    Of(fn(&Document) -> Value),
}

impl Columns {
    fn definitions(&self) -> Value {
        let definition = |c: &Column| {
            let format = if c.name == "Name" { "name" } else { "" };
            json!({"name": c.name, "type": c.kind, "format": format, "description": "", "priority": c.priority})
        };
        self.0.iter().map(definition).collect()
    }

    fn cells(&self, object: &Document) -> Vec<Value> {
        self.0.iter().map(|column| column.cell(object)).collect()
    }
}

impl Column {
    fn cell(&self, object: &Document) -> Value {
        let path = match &self.cell {
            Cell::Of(cell) => return cell(object),
            Cell::Path(path) => path.replace('.', "/"),
        };
        match (at(object, &path), self.kind.as_str()) {
            (None, "string") => json!("<none>"),
            (None, _) => Value::Null,
            (Some(value), "date") => json!(age_of(value.as_str().unwrap_or_default())),
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
            computed("Ready", |o| json!(pod::ready(o))),
            computed("Status", |o| json!(pod::status(o))),
            computed("Restarts", |o| json!(pod::restarts(o, Timestamp::now()))),
            age(),
            wide("IP", ".status.podIP"),
            wide("Node", ".spec.nodeName"),
            wide("Nominated Node", ".status.nominatedNodeName"),
        ],
        ("", "namespaces") => vec![text("Status", ".status.phase"), age()],
        ("", "nodes") => {
            vec![computed("Status", node_status), age(), text("Version", ".status.nodeInfo.kubeletVersion")]
        }
        ("", "events") => vec![
            computed("Last Seen", last_seen),
            text("Type", ".type"),
            text("Reason", ".reason"),
            computed("Object", involved),
            text("Message", ".message"),
        ],
        ("", "configmaps") => vec![computed("Data", |o| count(o, &["data", "binaryData"])), age()],
        ("", "secrets") => vec![text("Type", ".type"), computed("Data", |o| count(o, &["data"])), age()],
        ("", "persistentvolumeclaims") => vec![
            text("Status", ".status.phase"),
            text("Volume", ".spec.volumeName"),
            text("Capacity", ".status.capacity.storage"),
            age(),
        ],
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            vec![text("Created At", ".metadata.creationTimestamp")]
        }
        _ if !resource.columns.is_empty() => resource.columns.iter().map(of_definition).collect(),
        _ => vec![age()],
    };
    own.insert(0, text("Name", ".metadata.name"));
    Columns(own)
}

fn column(name: &str, kind: &str, path: &str) -> Column {
    Column { name: name.to_owned(), kind: kind.to_owned(), priority: 0, cell: Cell::Path(path.to_owned()) }
}

fn computed(name: &str, cell: fn(&Document) -> Value) -> Column {
    Column { cell: Cell::Of(cell), ..column(name, "string", "") }
}

fn of_definition(custom: &CustomColumn) -> Column {
    let kind = if custom.kind == "string" { "" } else { &custom.kind };
    Column { priority: custom.priority, ..column(&custom.name, kind, &custom.path) }
}

fn text_at<'a>(object: &'a Document, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// How many entries there are in these members together.
fn count(object: &Document, members: &[&str]) -> Value {
    let maps = members.iter().filter_map(|member| object.get(*member)?.as_object());
    json!(maps.map(serde_json::Map::len).sum::<usize>())
}

fn node_status(node: &Document) -> Value {
    let conditions = at(node, "/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    json!(match ready {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    })
}

fn last_seen(event: &Document) -> Value {
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    json!(age_of(times.iter().find_map(|path| at(event, path)?.as_str()).unwrap_or_default()))
}

fn involved(event: &Document) -> Value {
    let kind = text_at(event, "/involvedObject/kind").to_lowercase();
    json!(format!("{kind}/{}", text_at(event, "/involvedObject/name")))
}

/// How long ago the time was, `<unknown>` when there is none.
fn age_of(time: &str) -> String {
    time.parse().map_or_else(|_| "<unknown>".to_owned(), |time| age(time, Timestamp::now()))
}
