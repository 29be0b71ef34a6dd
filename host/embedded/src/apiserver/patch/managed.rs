//! `metadata.managedFields`: who has set what.
//!
//! Kept only for objects that were applied at least once: apply is all that reads them. An object that was made
//! otherwise gets the manager `before-first-apply` then, as Kubernetes does for objects older than the feature.

use super::fields::Fields;
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::schema::Schema;
use serde_json::{Value, json};

/// What one manager has set in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) manager: String,
    /// `Apply` or `Update`.
    pub(super) operation: String,
    pub(super) subresource: String,
    api_version: String,
    time: String,
    pub(super) fields: Fields,
}

impl Entry {
    pub(super) fn new(
        manager: &str,
        operation: &str,
        status: bool,
        api_version: &str,
        fields: Fields,
    ) -> Self {
        Self {
            manager: manager.to_owned(),
            operation: operation.to_owned(),
            subresource: if status { "status".to_owned() } else { String::new() },
            api_version: api_version.to_owned(),
            time: metadata::now(),
            fields,
        }
    }

    /// Whether it is the same manager setting fields in the same way.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
    }

    fn to_json(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": self.operation, "apiVersion": self.api_version,
            "time": self.time, "fieldsType": "FieldsV1", "fieldsV1": self.fields.to_json(),
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = json!(self.subresource);
        }
        entry
    }

    fn from_json(value: &Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            manager: text("manager"),
            operation: text("operation"),
            subresource: text("subresource"),
            api_version: text("apiVersion"),
            time: text("time"),
            fields: value.get("fieldsV1").map(Fields::from_json).unwrap_or_default(),
        }
    }
}

/// The entries of an object.
pub(super) fn read(object: &Document) -> Vec<Entry> {
    let entries = metadata::field(object, "managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().map(Entry::from_json).collect()
}

/// Writes the entries that own something.
pub(super) fn write(object: &mut Document, entries: &[Entry]) {
    let entries: Vec<Value> =
        entries.iter().filter(|entry| !entry.fields.is_empty()).map(Entry::to_json).collect();
    let metadata = metadata::metadata_mut(object);
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

/// What of an object can be owned: not its head, and either its status or all the rest.
pub(super) fn ownable(object: &Document, status: bool) -> Value {
    let mut kept = Document::new();
    for (name, value) in object {
        match name.as_str() {
            "apiVersion" | "kind" => {}
            "status" if !status => {}
            "metadata" if !status => {
                let owned = ["labels", "annotations", "finalizers", "ownerReferences"];
                let metadata: Document = owned
                    .iter()
                    .filter_map(|&field| Some((field.to_owned(), value.get(field)?.clone())))
                    .collect();
                if !metadata.is_empty() {
                    kept.insert(name.clone(), Value::Object(metadata));
                }
            }
            other if status && other != "status" => {}
            _ => {
                kept.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(kept)
}

/// Notes that `manager` has changed `old` to `new` by other means than apply: what it changed is its own now.
pub(in crate::apiserver) fn track(
    new: &mut Document,
    old: &Document,
    schema: &Schema,
    manager: &str,
    status: bool,
) {
    let mut entries = read(old);
    let part = if status { "status" } else { "" };
    if !entries.iter().any(|entry| entry.operation == "Apply" && entry.subresource == part) {
        return;
    }
    let (before, after) = (ownable(old, status), ownable(new, status));
    let changed = Fields::changed(Some(&before), &after, schema.root());
    let removed = Fields::of(&before, schema.root()).without(&Fields::of(&after, schema.root()));
    if changed.is_empty() && removed.is_empty() {
        return;
    }
    let api_version = new.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let mine = Entry::new(manager, "Update", status, api_version, changed.clone());
    for entry in entries.iter_mut().filter(|entry| entry.subresource == part) {
        entry.fields = entry.fields.without(&removed);
        if !entry.is_of(&mine) {
            entry.fields = entry.fields.without(&changed);
        }
    }
    match entries.iter_mut().find(|entry| entry.is_of(&mine)) {
        Some(entry) => {
            entry.fields.union(&changed);
            entry.time = mine.time;
        }
        None => entries.push(mine),
    }
    write(new, &entries);
}
