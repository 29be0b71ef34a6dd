//! Rules of the smaller kinds around pods.

use super::json::items;
use crate::apiserver::admission::{names, quantity};
use crate::apiserver::failure::Cause;
use crate::apiserver::metadata::{self, Document};
use serde_json::{Map, Value};

fn spec<'a>(object: &'a Document, field: &str) -> Option<&'a Value> {
    object.get("spec").and_then(|spec| spec.get(field))
}

/// Quantities of a map that cannot be read or are negative.
pub(super) fn quantities(map: Option<&Value>, path: &str) -> Vec<Cause> {
    let entries = map.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    entries
        .filter_map(|(name, value)| {
            let text = value.as_str().unwrap_or_default();
            let path = format!("{path}[{name}]");
            match quantity::milli(text) {
                None => Some(Cause::unreadable(path, text, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")),
                Some(..0) => Some(Cause::invalid(path, text, "must be greater than or equal to 0")),
                Some(_) => None,
            }
        })
        .collect()
}

pub(super) fn service(object: &Document) -> Vec<Cause> {
    let external = spec(object, "type").and_then(Value::as_str) == Some("ExternalName");
    let headless = spec(object, "clusterIP").and_then(Value::as_str) == Some("None");
    let ports = spec(object, "ports").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut causes = Vec::new();
    let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if let Some(kind) = spec(object, "type").and_then(Value::as_str).filter(|kind| !known.contains(kind)) {
        causes.push(Cause::unsupported("spec.type", kind, &known));
    }
    if ports.is_empty() && !external && !headless {
        causes.push(Cause::required("spec.ports", ""));
    }
    for (i, port) in ports.iter().enumerate() {
        let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
        if !(1..=65535).contains(&number) {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("spec.ports[{i}].port"), &number.to_string(), why));
        }
        let target = port.get("targetPort").and_then(Value::as_i64).unwrap_or(1);
        if !(1..=65535).contains(&target) {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("spec.ports[{i}].targetPort"), &target.to_string(), why));
        }
        if ports.len() > 1 && port.get("name").and_then(Value::as_str).unwrap_or_default().is_empty() {
            causes.push(Cause::required(format!("spec.ports[{i}].name"), ""));
        }
    }
    causes
}

pub(super) fn claim(object: &Document) -> Vec<Cause> {
    let mut causes = Vec::new();
    if spec(object, "accessModes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    let known = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in items(spec(object, "accessModes")) {
        let mode = mode.as_str().unwrap_or_default();
        if !known.contains(&mode) {
            causes.push(Cause::unsupported("spec.accessModes", mode, &known));
        }
    }
    let class = spec(object, "storageClassName").and_then(Value::as_str).unwrap_or_default();
    if let Some(why) = names::subdomain_error(class).filter(|_| !class.is_empty()) {
        causes.push(Cause::invalid("spec.storageClassName", class, &why));
    }
    let amounts = |kind: &str| spec(object, "resources").and_then(|r| r.get(kind));
    let storage = amounts("requests").and_then(|r| r.get("storage")).map(|s| s.as_str().unwrap_or_default());
    match storage.map(|storage| (storage, quantity::milli(storage))) {
        None => causes.push(Cause::required("spec.resources[storage]", "")),
        Some((storage, Some(..=0))) => {
            causes.push(Cause::invalid("spec.resources[storage]", storage, "must be greater than zero"));
        }
        Some(_) => {}
    }
    // What cannot be read is no quantity anywhere.
    for kind in ["requests", "limits"] {
        let path = format!("spec.resources.{kind}");
        causes.extend(quantities(amounts(kind), &path).into_iter().filter(Cause::is_unreadable));
    }
    causes
}

/// A claim may only grow.
pub(super) fn claim_of_update(new: &Document, old: &Document) -> Vec<Cause> {
    let fixed = ["accessModes", "storageClassName", "volumeMode", "selector"];
    let mut causes: Vec<Cause> = fixed
        .iter()
        .filter(|field| spec(new, field) != spec(old, field))
        .map(|_| {
            let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
            Cause::forbidden("spec", why)
        })
        .take(1)
        .collect();
    let size = |object| {
        let requests = spec(object, "resources").and_then(|r| r.get("requests"));
        requests.and_then(|r| r.get("storage")).and_then(Value::as_str).and_then(quantity::milli)
    };
    if size(new) < size(old) {
        causes.push(Cause::forbidden(
            "spec.resources.requests.storage",
            "field can not be less than status.capacity",
        ));
    }
    causes
}

/// Events live in the namespace of what they are about; those about cluster-wide objects in `default`.
pub(super) fn event(object: &Document) -> Vec<Cause> {
    let involved = object.get("involvedObject").and_then(|o| o.get("namespace")).and_then(Value::as_str);
    let namespace = metadata::namespace(object);
    match involved.unwrap_or_default() {
        "" if matches!(namespace, "default" | "kube-system") => Vec::new(),
        involved if involved == namespace => Vec::new(),
        involved => {
            vec![Cause::invalid("involvedObject.namespace", involved, "does not match event.namespace")]
        }
    }
}
