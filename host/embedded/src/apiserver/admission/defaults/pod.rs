//! The values that fields of pods have when nobody says one.

use super::{default, each};
use crate::apiserver::admission::quantity;
use crate::apiserver::metadata::{Document, member};
use serde_json::{Value, json};

/// Sets the defaults of a pod.
pub(super) fn set_defaults(pod: &mut Document) {
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
    if spec.get("hostNetwork") == Some(&json!(true)) {
        each(spec, "containers", |container| each(container, "ports", host_port));
        each(spec, "initContainers", |container| each(container, "ports", host_port));
    }
    tolerate_short_failures(spec);
}

/// A container in its node's network has its ports there.
fn host_port(port: &mut Document) {
    let number = port.get("containerPort").cloned().unwrap_or_default();
    default(port, "hostPort", || number);
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
            if let Some(grpc) = probe.get_mut("grpc").and_then(Value::as_object_mut) {
                default(grpc, "service", || json!(""));
            }
        }
    }
    for moment in ["postStart", "preStop"] {
        let hook = container.get_mut("lifecycle").and_then(|lifecycle| lifecycle.get_mut(moment));
        if let Some(hook) = hook.and_then(Value::as_object_mut) {
            http_get(hook);
        }
    }
    each(container, "env", |variable| {
        if let Some(from) = variable.get_mut("valueFrom").and_then(Value::as_object_mut) {
            reference(from);
        }
    });
    if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
        quantity::canonical_in(resources, "limits");
        quantity::canonical_in(resources, "requests");
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
    for source in ["configMap", "secret", "projected", "downwardAPI"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            default(source, "defaultMode", || json!(0o644));
        }
    }
    if let Some(api) = volume.get_mut("downwardAPI").and_then(Value::as_object_mut) {
        each(api, "items", reference);
    }
    if let Some(projected) = volume.get_mut("projected").and_then(Value::as_object_mut) {
        each(projected, "sources", |source| {
            if let Some(token) = source.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
                default(token, "expirationSeconds", || json!(3600));
            }
            if let Some(api) = source.get_mut("downwardAPI").and_then(Value::as_object_mut) {
                each(api, "items", reference);
            }
        });
    }
    let template = volume.get_mut("ephemeral").and_then(|ephemeral| ephemeral.get_mut("volumeClaimTemplate"));
    if let Some(template) = template.and_then(Value::as_object_mut) {
        default(template, "metadata", || json!({}));
        super::claim(member(template, "spec"));
    }
    if let Some(host) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        default(host, "type", || json!(""));
    }
}

#[cfg(test)]
mod tests {
    use super::{is_latest, set_defaults};
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
        let pod = json!({"spec": {"restartPolicy": "Never", "volumes": [{"name": "v"}], "containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 1}], "resources": {"limits": {"cpu": "1"}}}]}});
        let mut pod = pod.as_object().unwrap().clone();
        set_defaults(&mut pod);
        assert_eq!(pod["spec"]["restartPolicy"], "Never");
        assert_eq!(pod["spec"]["volumes"][0]["emptyDir"], json!({}));
        assert_eq!(pod["spec"]["containers"][0]["ports"][0]["protocol"], "TCP");
        assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "1"}));
        let mut again = pod.clone();
        set_defaults(&mut again);
        assert_eq!(again, pod);
    }
}
