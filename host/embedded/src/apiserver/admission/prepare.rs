//! The server's additions to an object: its identity, its initial state, and the fields that only the server may
//! change.

use super::defaults::set_defaults;
use crate::apiserver::metadata::{self, Document, member, metadata_mut};
use crate::apiserver::resource::Resource;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use uuid::Uuid;

/// Gives a new object its identity, its initial state, and defaults.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Document) {
    let metadata = metadata_mut(object);
    for field in
        ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"]
    {
        metadata.remove(field);
    }
    metadata.insert("uid".to_owned(), json!(Uuid::new_v4().to_string()));
    metadata.insert("creationTimestamp".to_owned(), json!(metadata::now()));
    if resource.counts_generations {
        metadata.insert("generation".to_owned(), json!(1));
    }
    // Nodes are created with their status. Clients cannot set the status of other kinds.
    if resource.has_status() && !resource.is_core("nodes") {
        object.remove("status");
    }
    match initial_status(resource, object) {
        Value::Null => {}
        status => {
            object.insert("status".to_owned(), status);
        }
    }
    if resource.is_core("namespaces") {
        member(object, "spec").insert("finalizers".to_owned(), json!(["kubernetes"]));
        name_label(object);
    }
    fold_string_data(resource, object);
    set_defaults(resource, object);
}

/// Keeps the fields of an object that only the server may change, and sets defaults.
pub(crate) fn prepare_update(resource: &Resource, new: &mut Document, old: &Document) {
    if resource.is_core("namespaces") {
        new.insert("spec".to_owned(), old.get("spec").cloned().unwrap_or_else(|| json!({})));
        name_label(new);
    }
    if resource.is_core("pods") {
        // A change that does not set these fields leaves them as they are.
        for field in ["priority", "preemptionPolicy"] {
            if let Some(value) = old.get("spec").and_then(|spec| spec.get(field)) {
                member(new, "spec").entry(field).or_insert_with(|| value.clone());
            }
        }
    }
    fold_string_data(resource, new);
    set_defaults(resource, new);
}

fn initial_status(resource: &Resource, object: &Document) -> Value {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") => json!({"phase": "Active"}),
        ("", "pods" | "persistentvolumeclaims") => json!({"phase": "Pending"}),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition_status(object),
        _ => Value::Null,
    }
}

/// Returns the status of a definition, which takes effect with its creation.
fn definition_status(definition: &Document) -> Value {
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    let stored: Vec<_> = versions
        .filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| version.get("name").cloned())
        .collect();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": metadata::now(),
        })
    };
    json!({
        "acceptedNames": spec.get("names"),
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    })
}

/// Adds a namespace's name to its labels, so that selectors can refer to it.
fn name_label(namespace: &mut Document) {
    let name = json!(metadata::name(namespace));
    member(metadata_mut(namespace), "labels").insert("kubernetes.io/metadata.name".to_owned(), name);
}

/// Moves `stringData` of a secret into `data`. Clients can write to it, but it is not stored.
fn fold_string_data(resource: &Resource, object: &mut Document) {
    if !resource.is_core("secrets") {
        return;
    }
    let Some(Value::Object(strings)) = object.remove("stringData") else { return };
    let data = member(object, "data");
    for (key, value) in strings {
        if let Some(text) = value.as_str() {
            data.insert(key, json!(STANDARD.encode(text)));
        }
    }
}
