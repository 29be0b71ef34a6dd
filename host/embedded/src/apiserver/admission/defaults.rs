//! The values that fields have when a client does not state them (Kubernetes API reference).

use crate::apiserver::metadata::{Document, member};
use crate::apiserver::resource::Resource;
use crate::apiserver::schema;
use crate::quantity;
use serde_json::{Value, json};

/// Sets the defaults of the object's kind, and writes its quantities as Kubernetes does.
pub(super) fn set_defaults(resource: &Resource, object: &mut Document) {
    schema::set_defaults(object, &resource.schema);
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod(member(object, "spec")),
        ("", "persistentvolumeclaims") => write_quantities(member(object, "spec")),
        ("", "limitranges") => {
            write_quantities(member(object, "spec"));
            each(member(object, "spec"), "limits", limits);
        }
        ("", "resourcequotas") => {
            write_quantities(member(object, "spec"));
            let hard = object.get("spec").and_then(|spec| spec.get("hard")).cloned();
            if let Some(hard) = hard {
                member(object, "status").insert("hard".to_owned(), hard);
            }
        }
        ("networking.k8s.io", "networkpolicies") => network_policy(member(object, "spec")),
        _ => {}
    }
}

fn each(map: &mut Document, list: &str, set: impl Fn(&mut Document)) {
    let items = map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut).for_each(set);
}

/// The fields whose members are quantities.
const AMOUNTS: &[&str] = &["hard", "limits", "requests", "max", "min", "default", "defaultRequest"];

/// Brings every quantity below into the form in which Kubernetes writes it.
fn write_quantities(object: &mut Document) {
    for (field, value) in object {
        match value {
            Value::Object(amounts) if AMOUNTS.contains(&field.as_str()) => {
                for amount in amounts.values_mut() {
                    if let Some(text) = amount.as_str().and_then(quantity::stored) {
                        *amount = json!(text);
                    }
                }
            }
            Value::Object(inner) => write_quantities(inner),
            Value::Array(items) => {
                items.iter_mut().filter_map(Value::as_object_mut).for_each(write_quantities);
            }
            _ => {}
        }
    }
}

/// Sets members of one map where the other has none of that name.
fn copy_missing(object: &mut Document, from: &str, to: &str) {
    let values = object.get(from).and_then(Value::as_object).cloned();
    for (name, value) in values.into_iter().flatten() {
        member(object, to).entry(name).or_insert(value);
    }
}

fn network_policy(spec: &mut Document) {
    spec.retain(|_, rules| !rules.as_array().is_some_and(Vec::is_empty));
    let types = if spec.contains_key("egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    spec.entry("policyTypes").or_insert(types);
}

/// What is not stated of containers is the most they may have.
fn limits(limit: &mut Document) {
    if limit.get("type").and_then(Value::as_str) == Some("Container") {
        copy_missing(limit, "max", "default");
        copy_missing(limit, "default", "defaultRequest");
        copy_missing(limit, "min", "defaultRequest");
    }
}

fn pod(spec: &mut Document) {
    let account = spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount"));
    let account = account.cloned().unwrap_or_else(|| json!("default"));
    spec.entry("serviceAccountName").or_insert_with(|| account.clone());
    spec.entry("serviceAccount").or_insert(account);
    for list in ["containers", "initContainers"] {
        each(spec, list, |container| {
            let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
            let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
            container.entry("imagePullPolicy").or_insert(json!(policy));
            copy_missing(member(container, "resources"), "limits", "requests");
        });
    }
    each(spec, "volumes", |volume| {
        if volume.len() == 1 {
            volume.insert("emptyDir".to_owned(), json!({}));
        }
    });
    write_quantities(spec);
    tolerate_short_failures(spec);
}

/// Pods stay for five minutes on nodes that do not report, unless they say otherwise (admission plugin
/// `DefaultTolerationSeconds`).
fn tolerate_short_failures(spec: &mut Document) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let text = |field| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
            (text("key") == key || text("key").is_empty()) && matches!(text("effect"), "NoExecute" | "")
        });
        if !tolerated {
            tolerations.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
}

/// Whether an image names no version, or the one that means "the newest".
fn is_latest(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    !image.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

#[cfg(test)]
mod tests {
    use super::is_latest;

    #[test]
    fn images_without_a_version_are_always_pulled() {
        for (image, latest) in [
            ("busybox", true),
            ("busybox:latest", true),
            ("busybox:1", false),
            ("registry:5000/busybox", true),
            ("registry:5000/busybox:1", false),
            ("busybox@sha256:00", false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }
}
