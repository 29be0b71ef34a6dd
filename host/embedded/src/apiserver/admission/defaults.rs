//! The values that fields have when nobody says one (Kubernetes API reference).

use crate::apiserver::metadata::{Document, member};
use crate::apiserver::resource::Resource;
use crate::quantity;
use serde_json::{Value, json};

/// Sets the defaults of the object's kind.
pub(super) fn set_defaults(resource: &Resource, object: &mut Document) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod(object),
        ("", "secrets") => default(object, "type", || json!("Opaque")),
        ("", "persistentvolumeclaims") => claim(member(object, "spec")),
        ("", "limitranges") => each(member(object, "spec"), "limits", limits),
        ("", "resourcequotas") => {
            canonical_quantities(member(object, "spec"), "hard");
            let hard = object.get("spec").and_then(|spec| spec.get("hard")).cloned();
            if let Some(hard) = hard {
                member(object, "status").insert("hard".to_owned(), hard);
            }
        }
        ("networking.k8s.io", "networkpolicies") => network_policy(member(object, "spec")),
        _ => {}
    }
}

/// Writes the quantities of a map as Kubernetes does.
fn canonical_quantities(object: &mut Document, field: &str) {
    for (_, value) in object.get_mut(field).and_then(Value::as_object_mut).into_iter().flatten() {
        if let Some(text) = value.as_str().and_then(quantity::canonical) {
            *value = json!(text);
        }
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
        canonical_quantities(resources, "requests");
    }
}

/// What is not said of containers is the most they may have.
fn limits(limit: &mut Document) {
    let bounds = ["max", "min", "default", "defaultRequest"];
    for field in bounds {
        canonical_quantities(limit, field);
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

fn pod(pod: &mut Document) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    default(spec, "restartPolicy", || json!("Always"));
    default(spec, "dnsPolicy", || json!("ClusterFirst"));
    default(spec, "schedulerName", || json!("default-scheduler"));
    default(spec, "terminationGracePeriodSeconds", || json!(30));
    if let Some(..0) = spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), json!(1));
    }
    default(spec, "enableServiceLinks", || json!(true));
    default(spec, "securityContext", || json!({}));
    let account = spec.get("serviceAccount").cloned().unwrap_or_else(|| json!("default"));
    default(spec, "serviceAccountName", || account);
    let account = spec.get("serviceAccountName").cloned().unwrap_or_default();
    default(spec, "serviceAccount", || account);
    each(spec, "containers", container);
    each(spec, "initContainers", container);
    each(spec, "volumes", volume);
    // What the admission plugins `Priority` and `ServiceAccount` set; there are no priority classes here.
    default(spec, "priority", || json!(0));
    default(spec, "preemptionPolicy", || json!("PreemptLowerPriority"));
    tolerate_short_failures(spec);
}

/// Pods stay for five minutes on nodes that are not heard of, unless they say otherwise (admission plugin
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

fn container(container: &mut Document) {
    default(container, "terminationMessagePath", || json!("/dev/termination-log"));
    default(container, "terminationMessagePolicy", || json!("File"));
    default(container, "resources", || json!({}));
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    default(container, "imagePullPolicy", || json!(policy));
    each(container, "ports", |port| default(port, "protocol", || json!("TCP")));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).and_then(Value::as_object_mut) {
            for (field, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                default(probe, field, || json!(value));
            }
            http_get(probe);
        }
    }
    each(container, "env", |variable| {
        if let Some(from) = variable.get_mut("valueFrom").and_then(Value::as_object_mut) {
            reference(from);
        }
    });
    if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
        canonical_quantities(resources, "limits");
        canonical_quantities(resources, "requests");
    }
    let limits = container.get("resources").and_then(|r| r.get("limits")).and_then(Value::as_object).cloned();
    for (name, limit) in limits.into_iter().flatten() {
        let requests = member(member(container, "resources"), "requests");
        default(requests, &name, || limit);
    }
}

fn http_get(action: &mut Document) {
    if let Some(get) = action.get_mut("httpGet").and_then(Value::as_object_mut) {
        default(get, "scheme", || json!("HTTP"));
        default(get, "path", || json!("/"));
    }
}

/// A value that comes from the pod itself.
fn reference(from: &mut Document) {
    if let Some(field) = from.get_mut("fieldRef").and_then(Value::as_object_mut) {
        default(field, "apiVersion", || json!("v1"));
    }
    if let Some(field) = from.get_mut("resourceFieldRef").and_then(Value::as_object_mut) {
        default(field, "divisor", || json!("0"));
    }
}

/// Whether an image names no version, or the one that means "the newest".
fn is_latest(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    !image.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn volume(volume: &mut Document) {
    if volume.len() == 1 {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["configMap", "secret"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            default(source, "defaultMode", || json!(0o644));
        }
    }
    if let Some(host) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        default(host, "type", || json!(""));
    }
}

#[cfg(test)]
mod tests {
    use super::{is_latest, pod};
    use serde_json::json;

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

    #[test]
    fn defaults_are_set_once() {
        let given = json!({"spec": {"restartPolicy": "Never", "volumes": [{"name": "v"}], "containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 1}], "resources": {"limits": {"cpu": "1"}}}]}});
        let mut given = given.as_object().unwrap().clone();
        pod(&mut given);
        assert_eq!(given["spec"]["restartPolicy"], "Never");
        assert_eq!(given["spec"]["volumes"][0]["emptyDir"], json!({}));
        assert_eq!(given["spec"]["containers"][0]["ports"][0]["protocol"], "TCP");
        assert_eq!(given["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "1"}));
        let mut again = given.clone();
        pod(&mut again);
        assert_eq!(again, given);
    }
}
