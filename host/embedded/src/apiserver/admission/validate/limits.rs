//! Rules of what limits a namespace: `ResourceQuota` and `LimitRange`.

use super::json::{items, text};
use super::namespaced::quantities;
use crate::apiserver::admission::quantity;
use crate::apiserver::failure::Cause;
use crate::apiserver::metadata::Document;
use serde_json::{Map, Value};

/// What a quota counts one by one.
const COUNTED: [&str; 8] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.nodeports",
];

fn entries(map: Option<&Value>) -> impl Iterator<Item = (&String, &str)> {
    let entries = map.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    entries.map(|(name, value)| (name, value.as_str().unwrap_or_default()))
}

pub(super) fn quota(object: &Document) -> Vec<Cause> {
    let hard = object.get("spec").and_then(|spec| spec.get("hard"));
    let mut causes = quantities(hard, "spec.hard");
    for (name, limit) in entries(hard) {
        let counted = COUNTED.contains(&name.as_str()) || name == "services.loadbalancers";
        let known = counted
            || matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
            || name.contains('/')
            || ["requests.", "limits.", "hugepages-"].iter().any(|start| name.starts_with(start));
        let path = format!("spec.hard[{name}]");
        if !known {
            causes.push(Cause::invalid(path, name, "must be a standard resource for quota"));
        } else if (counted || name.starts_with("count/"))
            && quantity::milli(limit).is_some_and(|limit| limit % 1000 != 0)
        {
            causes.push(Cause::invalid(path, limit, "must be an integer"));
        }
    }
    causes
}

pub(super) fn range(object: &Document) -> Vec<Cause> {
    let mut causes = Vec::new();
    let limits = object.get("spec").and_then(|spec| spec.get("limits"));
    for (i, limit) in items(limits).enumerate() {
        let path = format!("spec.limits[{i}]");
        let kind = text(limit, "type");
        if !matches!(kind, "Container" | "Pod" | "PersistentVolumeClaim") && !kind.contains('/') {
            let why = "must be a standard limit type or fully qualified";
            causes.push(Cause::invalid(format!("{path}.type"), kind, why));
        }
        for field in ["max", "min", "default", "defaultRequest"] {
            causes.extend(quantities(limit.get(field), &format!("{path}.{field}")));
        }
        for (lower, upper) in [
            ("min", "max"),
            ("min", "defaultRequest"),
            ("min", "default"),
            ("defaultRequest", "max"),
            ("defaultRequest", "default"),
            ("default", "max"),
        ] {
            in_order(limit, lower, upper, &path, &mut causes);
        }
    }
    causes
}

/// The first of two bounds is not above the second. What is in between is blamed, as Kubernetes does.
fn in_order(limit: &Value, lower: &str, upper: &str, path: &str, causes: &mut Vec<Cause>) {
    for (name, low) in entries(limit.get(lower)) {
        let high = limit.get(upper).and_then(|upper| upper.get(name)).and_then(Value::as_str);
        let Some(high) = high else { continue };
        if quantity::milli(low) > quantity::milli(high) {
            let (blamed, value) =
                if lower == "min" && upper.starts_with("default") { (upper, high) } else { (lower, low) };
            let why = format!("{lower} value {low} is greater than {upper} value {high}");
            causes.push(Cause::invalid(format!("{path}.{blamed}[{name}]"), value, &why));
        }
    }
}
