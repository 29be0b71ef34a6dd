//! What a pod asks for.

use super::quantity;
use crate::apiserver::metadata::Document;
use serde_json::{Map, Value};

fn containers<'a>(pod: &'a Document, list: &str) -> impl Iterator<Item = &'a Value> {
    pod.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array).into_iter().flatten()
}

/// How much of a resource (`cpu`) a pod asks for (`requests` or `limits`), in thousandths: its containers together,
/// or its largest init container if that is more. None when no container says.
pub(super) fn of_pod(pod: &Document, kind: &str, resource: &str) -> Option<i128> {
    let one =
        |container: &Value| quantity::milli(container.get("resources")?.get(kind)?.get(resource)?.as_str()?);
    let running: Vec<_> = containers(pod, "containers").filter_map(one).collect();
    let starting = containers(pod, "initContainers").filter_map(one).max();
    let running = (!running.is_empty()).then(|| running.iter().sum::<i128>());
    running.max(starting)
}

/// The containers that do not say how much of a resource they ask for.
pub(super) fn silent<'a>(
    pod: &'a Document,
    kind: &'a str,
    resource: &'a str,
) -> impl Iterator<Item = &'a str> {
    containers(pod, "containers")
        .filter(move |c| c.get("resources").and_then(|r| r.get(kind)).and_then(|r| r.get(resource)).is_none())
        .filter_map(|container| container.get("name").and_then(Value::as_str))
}

/// Whether a pod has ended, and asks for nothing any more.
pub(super) fn has_ended(pod: &Document) -> bool {
    let phase = pod.get("status").and_then(|s| s.get("phase")).and_then(Value::as_str);
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// How a pod stands when memory runs short (`status.qosClass`).
pub(super) fn quality_of_service(pod: &Document) -> &'static str {
    let all = || containers(pod, "containers").chain(containers(pod, "initContainers"));
    let map = |container: &Value, kind: &str| -> Map<String, Value> {
        let resources = container.get("resources").and_then(|r| r.get(kind)).and_then(Value::as_object);
        resources.cloned().unwrap_or_default()
    };
    if all().all(|c| map(c, "limits").is_empty() && map(c, "requests").is_empty()) {
        return "BestEffort";
    }
    let guaranteed = all().all(|container| {
        let (limits, requests) = (map(container, "limits"), map(container, "requests"));
        ["cpu", "memory"].iter().all(|name| {
            limits.contains_key(*name) && requests.get(*name).is_none_or(|r| Some(r) == limits.get(*name))
        })
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}
