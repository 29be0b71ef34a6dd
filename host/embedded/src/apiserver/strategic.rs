//! Strategic merge patch: lists of objects merge by key (Kubernetes documentation, "Update API objects in place using
//! kubectl patch").
//!
//! The directive `$patch: delete` removes an item of a list. The order of a list in `$setElementOrder` is ignored: new
//! items are added at the end. All other directives are refused.

use super::failure::Failure;
use super::metadata::{self, Document};
use serde_json::{Map, Value};

const DIRECTIVE: &str = "$patch";
const ORDER: &str = "$setElementOrder/";

/// Returns the field that identifies the items of the list `field` of the object in `parent` (`patchMergeKey` of the
/// Kubernetes API). A list without such a field is replaced as a whole.
fn merge_key(parent: &str, field: &str) -> Option<&'static str> {
    Some(match (parent, field) {
        ("metadata", "ownerReferences") => "uid",
        (_, "containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets" | "secrets") => "name",
        (_, "volumeMounts") => "mountPath",
        ("containers" | "initContainers", "ports") => "containerPort",
        ("status", "conditions" | "addresses") => "type",
        ("spec", "hostAliases") => "ip",
        _ => return None,
    })
}

/// Merges `patch` into `target`, the object in the field `parent` (`""` for the whole object).
pub(super) fn merge(target: &mut Document, patch: &Document, parent: &str) -> Result<(), Failure> {
    for (name, value) in patch {
        match value {
            _ if name.starts_with(ORDER) => {}
            _ if name.starts_with('$') => {
                return Err(Failure::bad_request(format!(
                    "the patch directive {name}: {value} is not supported"
                )));
            }
            Value::Null => {
                target.remove(name);
            }
            Value::Object(patch) => merge(metadata::member(target, name), patch, name)?,
            Value::Array(patch) => {
                let mut items = match target.remove(name) {
                    Some(Value::Array(items)) => items,
                    _ => Vec::new(),
                };
                match merge_key(parent, name) {
                    Some(key) => merge_by_key(&mut items, patch, name, key)?,
                    // This is the only list of texts to which a patch adds items.
                    None if (parent, name.as_str()) == ("metadata", "finalizers") => {
                        let new: Vec<_> = patch.iter().filter(|item| !items.contains(item)).collect();
                        items.extend(new.into_iter().cloned());
                    }
                    None => items.clone_from(patch),
                }
                target.insert(name.clone(), Value::Array(items));
            }
            scalar => {
                target.insert(name.to_owned(), scalar.clone());
            }
        }
    }
    Ok(())
}

fn merge_by_key(items: &mut Vec<Value>, patch: &[Value], list: &str, key: &str) -> Result<(), Failure> {
    for change in patch {
        let (Value::Object(item), Some(id)) = (change, change.get(key)) else {
            let why = format!("map: {change} does not contain declared merge key: {key}");
            return Err(Failure::bad_request(why));
        };
        let found = items.iter().position(|existing| existing.get(key) == Some(id));
        if item.get(DIRECTIVE).is_some_and(|directive| directive == "delete") {
            found.map(|at| items.remove(at));
        } else if let Some(Value::Object(existing)) = found.map(|at| &mut items[at]) {
            merge(existing, item, list)?;
        } else {
            let mut fresh = Map::new();
            merge(&mut fresh, item, list)?;
            items.push(Value::Object(fresh));
        }
    }
    Ok(())
}
