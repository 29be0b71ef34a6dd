//! The values that fields have when nobody says one (Kubernetes API reference).

mod pod;

use super::quantity;
use crate::apiserver::metadata::{Document, member};
use crate::apiserver::resource::Resource;
use serde_json::{Value, json};

/// Sets the defaults of the object's kind.
pub(super) fn set_defaults(resource: &Resource, object: &mut Document) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod::set_defaults(object),
        ("", "secrets") => default(object, "type", || json!("Opaque")),
        ("", "services") => service(object),
        ("", "persistentvolumeclaims") => claim(member(object, "spec")),
        ("", "persistentvolumes") => {
            let spec = member(object, "spec");
            quantity::canonical_in(spec, "capacity");
            default(spec, "volumeMode", || json!("Filesystem"));
            default(spec, "persistentVolumeReclaimPolicy", || json!("Retain"));
        }
        ("", "limitranges") => each(member(object, "spec"), "limits", limits),
        ("", "resourcequotas") => {
            quantity::canonical_in(member(object, "spec"), "hard");
            let hard = object.get("spec").and_then(|spec| spec.get("hard")).cloned();
            if let Some(hard) = hard {
                member(object, "status").insert("hard".to_owned(), hard);
            }
        }
        ("networking.k8s.io", "networkpolicies") => network_policy(member(object, "spec")),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            each(object, "subjects", |subject| {
                if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
                    default(subject, "apiGroup", || json!("rbac.authorization.k8s.io"));
                }
            });
        }
        ("scheduling.k8s.io", "priorityclasses") => {
            default(object, "preemptionPolicy", || json!("PreemptLowerPriority"));
        }
        ("storage.k8s.io", "storageclasses") => {
            default(object, "reclaimPolicy", || json!("Delete"));
            default(object, "volumeBindingMode", || json!("Immediate"));
        }
        _ => {}
    }
}

fn default(map: &mut Document, field: &str, value: impl FnOnce() -> Value) {
    if !map.contains_key(field) {
        map.insert(field.to_owned(), value());
    }
}

fn each(map: &mut Document, list: &str, set: impl Fn(&mut Document)) {
    let items = map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut).for_each(set);
}

fn service(service: &mut Document) {
    let spec = member(service, "spec");
    default(spec, "type", || json!("ClusterIP"));
    default(spec, "sessionAffinity", || json!("None"));
    if spec.get("type") != Some(&json!("ExternalName")) {
        default(spec, "internalTrafficPolicy", || json!("Cluster"));
        default(spec, "ipFamilyPolicy", || json!("SingleStack"));
        default(spec, "ipFamilies", || json!(["IPv4"]));
    }
    if let Some(address) = spec.get("clusterIP").cloned() {
        default(spec, "clusterIPs", || json!([address]));
    }
    each(spec, "ports", |port| {
        default(port, "protocol", || json!("TCP"));
        let number = port.get("port").cloned().unwrap_or_default();
        default(port, "targetPort", || number);
    });
}

fn network_policy(spec: &mut Document) {
    for direction in ["ingress", "egress"] {
        if spec.get(direction).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            spec.remove(direction);
        }
    }
    let mut types = vec!["Ingress"];
    if spec.contains_key("egress") {
        types.push("Egress");
    }
    default(spec, "policyTypes", || json!(types));
    for direction in ["ingress", "egress"] {
        each(spec, direction, |rule| {
            each(rule, "ports", |port| default(port, "protocol", || json!("TCP")));
        });
    }
}

fn claim(spec: &mut Document) {
    default(spec, "volumeMode", || json!("Filesystem"));
    if let Some(resources) = spec.get_mut("resources").and_then(Value::as_object_mut) {
        quantity::canonical_in(resources, "requests");
    }
}

/// What is not said of containers is the most they may have.
fn limits(limit: &mut Document) {
    let bounds = ["max", "min", "default", "defaultRequest"];
    for field in bounds {
        quantity::canonical_in(limit, field);
    }
    if limit.get("type").and_then(Value::as_str) != Some("Container") {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let values = limit.get(from).and_then(Value::as_object).cloned();
        for (name, value) in values.into_iter().flatten() {
            default(member(limit, to), &name, || value);
        }
    }
}
