//! The values that fields have when nobody says one (Kubernetes API reference).

use crate::apiserver::metadata::{Document, member};
use crate::apiserver::resource::Resource;
use serde_json::{Value, json};

/// Sets the defaults of the object's kind.
pub(super) fn set_defaults(resource: &Resource, object: &mut Document) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod(object),
        ("", "secrets") => default(object, "type", || json!("Opaque")),
        ("", "services") => service(object),
        ("", "persistentvolumeclaims") => {
            default(member(object, "spec"), "volumeMode", || json!("Filesystem"));
        }
        ("", "persistentvolumes") => {
            let spec = member(object, "spec");
            default(spec, "volumeMode", || json!("Filesystem"));
            default(spec, "persistentVolumeReclaimPolicy", || json!("Retain"));
        }
        ("", "resourcequotas") => {
            let hard = object.get("spec").and_then(|spec| spec.get("hard")).cloned();
            if let Some(hard) = hard {
                member(object, "status").insert("hard".to_owned(), hard);
            }
        }
        ("networking.k8s.io", "networkpolicies") => network_policy(member(object, "spec")),
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

fn pod(pod: &mut Document) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    default(spec, "restartPolicy", || json!("Always"));
    default(spec, "dnsPolicy", || json!("ClusterFirst"));
    default(spec, "schedulerName", || json!("default-scheduler"));
    default(spec, "terminationGracePeriodSeconds", || json!(30));
    default(spec, "enableServiceLinks", || json!(true));
    default(spec, "securityContext", || json!({}));
    default(spec, "serviceAccountName", || json!("default"));
    let account = spec.get("serviceAccountName").cloned().unwrap_or_default();
    default(spec, "serviceAccount", || account);
    each(spec, "containers", container);
    each(spec, "initContainers", container);
    each(spec, "volumes", volume);
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
            if let Some(get) = probe.get_mut("httpGet").and_then(Value::as_object_mut) {
                default(get, "scheme", || json!("HTTP"));
                default(get, "path", || json!("/"));
            }
        }
    }
    each(container, "env", |variable| {
        let field = variable.get_mut("valueFrom").and_then(|from| from.get_mut("fieldRef"));
        if let Some(field) = field.and_then(Value::as_object_mut) {
            default(field, "apiVersion", || json!("v1"));
        }
    });
    let limits = container.get("resources").and_then(|r| r.get("limits")).and_then(Value::as_object).cloned();
    for (name, limit) in limits.into_iter().flatten() {
        let requests = member(member(container, "resources"), "requests");
        default(requests, &name, || limit);
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
    if let Some(host) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        default(host, "type", || json!(""));
    }
}

fn service(service: &mut Document) {
    let spec = member(service, "spec");
    default(spec, "type", || json!("ClusterIP"));
    default(spec, "sessionAffinity", || json!("None"));
    each(spec, "ports", |port| {
        default(port, "protocol", || json!("TCP"));
        let number = port.get("port").cloned().unwrap_or_default();
        default(port, "targetPort", || number);
    });
}

fn network_policy(spec: &mut Document) {
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

#[cfg(test)]
mod tests {
    use super::{is_latest, set_defaults};
    use crate::apiserver::resource::built_in;
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
        let pods = built_in("", "pods").unwrap();
        let pod = json!({"spec": {"restartPolicy": "Never", "volumes": [{"name": "v"}], "containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 1}], "resources": {"limits": {"cpu": "1"}}}]}});
        let mut pod = pod.as_object().unwrap().clone();
        set_defaults(&pods, &mut pod);
        assert_eq!(pod["spec"]["restartPolicy"], "Never");
        assert_eq!(pod["spec"]["volumes"][0]["emptyDir"], json!({}));
        assert_eq!(pod["spec"]["containers"][0]["ports"][0]["protocol"], "TCP");
        assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "1"}));
        let mut again = pod.clone();
        set_defaults(&pods, &mut again);
        assert_eq!(again, pod);
    }
}
