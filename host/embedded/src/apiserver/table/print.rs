//! Cells of tables.

use super::columns::since;
use crate::apiserver::metadata::{self, Document};
use serde_json::{Map, Value, json};

const NONE: &str = "<none>";

/// The value at a path like `/status/phase`.
pub(super) fn at<'a>(object: &'a Document, path: &str) -> Option<&'a Value> {
    let mut steps = path.trim_start_matches('/').split('/');
    let first = object.get(steps.next()?)?;
    steps.try_fold(first, |value, step| value.get(step))
}

/// The text at a path, `<none>` when there is none.
pub(super) fn text(object: &Document, path: &str) -> Value {
    text_or(object, path, NONE)
}

/// The text at a path, or another one when there is none.
pub(super) fn text_or(object: &Document, path: &str, otherwise: &str) -> Value {
    match at(object, path) {
        Some(Value::String(text)) if !text.is_empty() => json!(text),
        Some(Value::Number(number)) => json!(number.to_string()),
        _ => json!(otherwise),
    }
}

/// How many entries there are in these members together.
pub(super) fn count(object: &Document, members: &[&str]) -> Value {
    let size = |member: &&str| match object.get(*member) {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(items)) => items.len(),
        _ => 0,
    };
    json!(members.iter().map(size).sum::<usize>())
}

/// `a=b,c=d`
pub(super) fn labels(object: &Document, path: &str) -> Value {
    let labels = at(object, path).and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let labels: Vec<_> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if labels.is_empty() { json!(NONE) } else { json!(labels.join(",")) }
}

fn list<'a>(object: &'a Document, path: &str) -> impl Iterator<Item = &'a Value> {
    at(object, path).and_then(Value::as_array).into_iter().flatten()
}

fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn node_status(node: &Document) -> Value {
    let ready = list(node, "/status/conditions").find(|condition| field(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| field(condition, "status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if at(node, "/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    json!(status)
}

pub(super) fn node_roles(node: &Document) -> Value {
    let labels = metadata::field(node, "labels").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let roles: Vec<_> = labels.filter_map(|key| key.strip_prefix("node-role.kubernetes.io/")).collect();
    if roles.is_empty() { json!(NONE) } else { json!(roles.join(",")) }
}

pub(super) fn node_address(node: &Document) -> Value {
    let address = list(node, "/status/addresses").find(|address| field(address, "type") == "InternalIP");
    address.map_or_else(|| json!(NONE), |address| json!(field(address, "address")))
}

pub(super) fn service_ports(service: &Document) -> Value {
    let ports: Vec<_> = list(service, "/spec/ports")
        .map(|port| format!("{}/{}", port.get("port").unwrap_or(&Value::Null), field(port, "protocol")))
        .collect();
    if ports.is_empty() { json!(NONE) } else { json!(ports.join(",")) }
}

pub(super) fn access_modes(claim: &Document) -> Value {
    let modes: Vec<_> = list(claim, "/spec/accessModes")
        .map(|mode| match mode.as_str().unwrap_or_default() {
            "ReadWriteOnce" => "RWO",
            "ReadOnlyMany" => "ROX",
            "ReadWriteMany" => "RWX",
            "ReadWriteOncePod" => "RWOP",
            other => other,
        })
        .collect();
    json!(modes.join(","))
}

/// `pods: 1/10, ...`: what is used of the requests, or of the limits.
pub(super) fn quota(quota: &Document, limits: bool) -> String {
    let hard = at(quota, "/spec/hard").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let parts: Vec<_> = hard
        .filter(|(key, _)| key.starts_with("limits.") == limits)
        .map(|(key, hard)| {
            let used = at(quota, "/status/used").and_then(|used| used.get(key)).and_then(Value::as_str);
            format!("{key}: {}/{}", used.unwrap_or("0"), hard.as_str().unwrap_or_default())
        })
        .collect();
    parts.join(", ")
}

pub(super) fn last_seen(event: &Document) -> Value {
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/firstTimestamp"];
    let time = times.iter().find_map(|path| at(event, path).and_then(Value::as_str));
    json!(since(time.unwrap_or_else(|| metadata::text(event, "creationTimestamp"))))
}

pub(super) fn involved(event: &Document) -> Value {
    let involved = |name: &str| at(event, "/involvedObject").map_or("", |object| field(object, name));
    json!(format!("{}/{}", involved("kind").to_lowercase(), involved("name")))
}

pub(super) fn source(event: &Document) -> Value {
    let component = text_or(event, "/source/component", "");
    match at(event, "/source/host").and_then(Value::as_str) {
        Some(host) => json!(format!("{}, {host}", component.as_str().unwrap_or_default())),
        None => component,
    }
}
