//! `LimitRange`: the default requests and limits of containers, and the bounds on them.

use super::defaults::{copy_missing, each};
use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::{self, Document, at, member};
use crate::apiserver::resource::Resource;
use crate::apiserver::store::State;
use crate::quantity;
use serde_json::{Map, Value};

/// Sets the defaults of the namespace's ranges for containers. Fails with 403 if a container asks for more or less than
/// it may.
pub(super) fn apply_limits(resource: &Resource, pod: &mut Document, state: &State) -> Result<(), Failure> {
    let namespace = metadata::namespace(pod).to_owned();
    for range in state.in_namespace("limitranges", &namespace) {
        let limits = at(range.document(), "/spec/limits").and_then(Value::as_array);
        for limit in limits.into_iter().flatten() {
            if limit.get("type").and_then(Value::as_str) == Some("Container") {
                set_defaults(pod, limit);
                if let Some(why) = broken(pod, limit) {
                    return Err(resource.forbidden(metadata::name(pod), &why));
                }
            }
        }
    }
    Ok(())
}

fn entries<'a>(limit: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    limit.get(field).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn set_defaults(pod: &mut Document, limit: &Value) {
    for list in ["containers", "initContainers"] {
        each(member(pod, "spec"), list, |container| {
            let resources = member(container, "resources");
            for (kind, field) in [("requests", "defaultRequest"), ("limits", "default")] {
                for (name, value) in entries(limit, field) {
                    member(resources, kind).entry(name).or_insert_with(|| value.clone());
                }
            }
            copy_missing(resources, "limits", "requests");
        });
    }
}

/// Returns the first bound that a container violates.
fn broken(pod: &Document, limit: &Value) -> Option<String> {
    let containers = at(pod, "/spec/containers").and_then(Value::as_array);
    for container in containers.into_iter().flatten() {
        for (field, kind) in [("max", "limits"), ("min", "requests")] {
            for (name, bound) in entries(limit, field) {
                let asked = container.get("resources").and_then(|r| r.get(kind)).and_then(|r| r.get(name));
                let milli = |amount: &Value| amount.as_str().and_then(quantity::milli);
                let keeps = asked.is_some_and(|asked| match field {
                    "max" => milli(asked) <= milli(bound),
                    _ => milli(asked) >= milli(bound),
                });
                if !keeps {
                    return Some(format!("{field} {name} per Container is {bound}, asked for: {asked:?}"));
                }
            }
        }
    }
    None
}
