//! The columns of each kind.

use super::age::age;
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::resource::{CustomColumn, Resource};
use serde_json::{Value, json};

/// A column: its name, whether it needs `-o wide`, and what is in it.
struct Column {
    name: String,
    kind: String,
    format: &'static str,
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
    let name = Column {
        name: "Name".to_owned(),
        kind: "string".to_owned(),
        format: "name",
        priority: 0,
        cell: Cell::Fixed(|object| json!(metadata::name(object))),
    };
    let mut columns = vec![name];
    columns.push(text("Age", age_cell));
    let _ = resource;
    Columns(columns)
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

fn age_cell(object: &Document) -> Value {
    json!(since(metadata::text(object, "creationTimestamp")))
}

/// How long ago the time was, `<unknown>` when there is none.
fn since(time: &str) -> String {
    time.parse().map_or_else(|_| "<unknown>".to_owned(), |time| age(time, jiff::Timestamp::now()))
}

fn custom(column: &CustomColumn, object: &Document) -> Value {
    let mut value = None;
    for (i, step) in column.path.trim_start_matches('.').split('.').enumerate() {
        value = if i == 0 { object.get(step) } else { value.and_then(|v: &Value| v.get(step)) };
    }
    match (value, column.kind.as_str()) {
        (None, _) => Value::Null,
        (Some(value), "date") => json!(since(value.as_str().unwrap_or_default())),
        (Some(value @ Value::String(_)), _) => value.clone(),
        (Some(value), "string") => json!(value.to_string()),
        (Some(value), _) => value.clone(),
    }
}
