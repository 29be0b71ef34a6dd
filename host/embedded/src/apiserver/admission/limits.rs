//! `LimitRange`: what containers ask for when they do not say, and how much they may ask for.

use super::quantity;
use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::{self, Document, member};
use crate::apiserver::resource::Resource;
use crate::apiserver::store::State;
use serde_json::{Map, Value};

/// Sets what the namespace's ranges say for containers that do not; 403 when one asks for more or less than it may.
pub(in crate::apiserver) fn apply_limits(
    resource: &Resource,
    object: &mut Document,
    state: &State,
) -> Result<(), Failure> {
    if !resource.is_core("pods") {
        return Ok(());
    }
    let namespace = metadata::namespace(object).to_owned();
    for range in state.in_namespace("limitranges", &namespace) {
        let limits =
            range.document().get("spec").and_then(|spec| spec.get("limits")).and_then(Value::as_array);
        for limit in limits.into_iter().flatten() {
            if limit.get("type").and_then(Value::as_str) == Some("Container") {
                set_defaults(object, limit);
                check(resource, object, limit)?;
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
        let containers =
            pod.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            let resources = member(container, "resources");
            for (kind, field) in [("requests", "defaultRequest"), ("limits", "default")] {
                for (name, value) in entries(limit, field) {
                    member(resources, kind).entry(name).or_insert_with(|| value.clone());
                }
            }
            // A request that nobody states is the limit.
            let limits = resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, value) in limits {
                member(resources, "requests").entry(name).or_insert(value);
            }
        }
    }
}

fn check(resource: &Resource, pod: &Document, limit: &Value) -> Result<(), Failure> {
    let containers = pod.get("spec").and_then(|spec| spec.get("containers")).and_then(Value::as_array);
    for container in containers.into_iter().flatten() {
        let asked = |kind: &str, name: &str| {
            container
                .get("resources")
                .and_then(|r| r.get(kind))
                .and_then(|r| r.get(name))
                .and_then(Value::as_str)
        };
        for (name, most) in entries(limit, "max") {
            refuse_unless(
                resource,
                pod,
                asked("limits", name),
                most,
                |asked, most| asked <= most,
                || format!("maximum {name} usage per Container is {}", most.as_str().unwrap_or_default()),
            )?;
        }
        for (name, least) in entries(limit, "min") {
            refuse_unless(
                resource,
                pod,
                asked("requests", name),
                least,
                |asked, least| asked >= least,
                || format!("minimum {name} usage per Container is {}", least.as_str().unwrap_or_default()),
            )?;
        }
    }
    Ok(())
}

fn refuse_unless(
    resource: &Resource,
    pod: &Document,
    asked: Option<&str>,
    bound: &Value,
    fits: impl Fn(i128, i128) -> bool,
    rule: impl Fn() -> String,
) -> Result<(), Failure> {
    let Some(limit) = bound.as_str().and_then(quantity::milli) else { return Ok(()) };
    let why = match asked {
        None => format!("{}. No value is specified", rule()),
        Some(text) if quantity::milli(text).is_none_or(|asked| fits(asked, limit)) => return Ok(()),
        Some(text) => format!("{}, but {text} is asked for", rule()),
    };
    Err(resource.forbidden(metadata::name(pod), &why))
}
