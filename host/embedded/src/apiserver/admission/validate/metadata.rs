//! Rules of `metadata`, the same for all kinds.

use crate::apiserver::admission::names;
use crate::apiserver::failure::Cause;
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::resource::Resource;
use serde_json::{Map, Value};

/// Sum of all keys and values of annotations, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Rules that hold for every object.
pub(super) fn of_any(resource: &Resource, object: &Document) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = metadata::name(object);
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else if let Some(why) = name_rule(resource)(name) {
        causes.push(Cause::invalid("metadata.name", name, &why));
    }
    let prefix = metadata::text(object, "generateName");
    let without_dash = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |kept| format!("{kept}a"));
    if let Some(why) = name_rule(resource)(&without_dash).filter(|_| !prefix.is_empty()) {
        causes.push(Cause::invalid("metadata.generateName", prefix, &why));
    }
    for (key, value) in map(object, "labels") {
        let value = value.as_str().unwrap_or_default();
        if let Some(why) = names::qualified_error(key) {
            causes.push(Cause::invalid("metadata.labels", key, &why));
        }
        if let Some(why) = names::label_value_error(value) {
            causes.push(Cause::invalid("metadata.labels", value, &why));
        }
    }
    let mut size = 0;
    for (key, value) in map(object, "annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        if let Some(why) = names::qualified_error(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", key, &why));
        }
    }
    if size > ANNOTATIONS_LIMIT {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS_LIMIT));
    }
    for (i, finalizer) in metadata::finalizers(object).enumerate() {
        let standard = matches!(finalizer, "kubernetes" | "foregroundDeletion" | "orphan");
        if let Some(why) = names::qualified_error(finalizer) {
            causes.push(Cause::invalid("metadata.finalizers", finalizer, &why));
        } else if resource.group.is_empty() && !finalizer.contains('/') && !standard {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(format!("metadata.finalizers[{i}]"), finalizer, why));
        }
    }
    causes.extend(owners(object));
    causes
}

/// Rules of a change.
pub(super) fn of_update(new: &Document, old: &Document) -> Vec<Cause> {
    if !metadata::is_deleting(old) {
        return Vec::new();
    }
    let before: Vec<_> = metadata::finalizers(old).collect();
    metadata::finalizers(new)
        .filter(|finalizer| !before.contains(finalizer))
        .map(|_| {
            let why = "no new finalizers can be added if the object is being deleted";
            Cause::forbidden("metadata.finalizers", why)
        })
        .collect()
}

type Rule = fn(&str) -> Option<String>;

/// The form of names of a kind: most are subdomains, some labels, and RBAC's are anything that fits into a path.
fn name_rule(resource: &Resource) -> Rule {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces" | "services") => names::label_error,
        ("rbac.authorization.k8s.io", _) => names::path_error,
        _ => names::subdomain_error,
    }
}

fn owners(object: &Document) -> Vec<Cause> {
    let owners = metadata::field(object, "ownerReferences").and_then(Value::as_array);
    let mut causes = Vec::new();
    for owner in owners.into_iter().flatten() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
                let path = format!("metadata.ownerReferences.{field}");
                causes.push(Cause::invalid(path, "", "must not be empty"));
            }
        }
    }
    causes
}

fn map<'a>(object: &'a Document, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    metadata::field(object, field).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}
