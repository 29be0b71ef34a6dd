//! The defaults that admission fills into the objects of a lab.

use crate::cluster::Cluster;
use serde_json::{Value, json};

/// Creates the object, without storing it.
async fn try_out(cluster: &Cluster, plural: &str, object: &Value) -> Result<Value, kube::core::Status> {
    let path = format!("/api/v1/namespaces/{{ns}}/{plural}?dryRun=All");
    let mut object = object.clone();
    object["metadata"] = json!({"name": "a"});
    cluster.send("POST", &path, "application/json", &object).await
}

pub(crate) async fn fields_have_their_defaults(cluster: &Cluster) {
    let image = "registry.example/i:1";
    let pod = json!({"spec": {
        "volumes": [{"name": "v"}, {"name": "c", "configMap": {"name": "m"}}],
        "containers": [{"name": "c", "image": image, "ports": [{"containerPort": 80}],
            "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "readinessProbe": {"httpGet": {"port": 80}},
            "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}]}});
    let claim =
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    for (plural, given, expected) in [
        ("secrets", &json!({}), &[("/type", json!("Opaque"))][..]),
        (
            "pods",
            &pod,
            &[
                ("/spec/restartPolicy", json!("Always")),
                ("/spec/terminationGracePeriodSeconds", json!(30)),
                ("/spec/serviceAccountName", json!("default")),
                ("/spec/priority", json!(0)),
                ("/spec/volumes/0/emptyDir", json!({})),
                ("/spec/volumes/1/configMap/defaultMode", json!(0o644)),
                ("/spec/containers/0/imagePullPolicy", json!("IfNotPresent")),
                ("/spec/containers/0/ports/0/protocol", json!("TCP")),
                ("/spec/containers/0/env/0/valueFrom/fieldRef/apiVersion", json!("v1")),
                ("/spec/containers/0/readinessProbe/httpGet/path", json!("/")),
                ("/spec/containers/0/readinessProbe/periodSeconds", json!(10)),
                ("/spec/containers/0/resources/requests", json!({"cpu": "500m", "memory": "1Gi"})),
                ("/spec/tolerations/0/tolerationSeconds", json!(300)),
                ("/status/qosClass", json!("Guaranteed")),
            ],
        ),
        (
            "persistentvolumeclaims",
            &claim,
            &[("/spec/resources/requests/storage", json!("1Gi")), ("/status/phase", json!("Pending"))],
        ),
    ] {
        let stored = try_out(cluster, plural, given).await.unwrap();
        for (path, value) in expected {
            assert_eq!(stored.pointer(path), Some(value), "{plural} {path} in {stored:#}");
        }
    }
}

pub(crate) async fn broken_rules_are_causes_of_their_field(cluster: &Cluster) {
    let container = |more: Value| {
        let mut container = json!({"name": "c", "image": "registry.example/i:1"});
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"spec": {"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}})
    };
    let pod = |more: Value| {
        let mut pod = container(json!({}));
        pod["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        pod
    };
    let claim = |storage: &str| json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}});
    for (plural, object, code, cause) in [
        ("pods", container(json!({"command": [1]})), 400, ""),
        ("pods", container(json!({"resources": {"limits": {"cpu": "abc"}}})), 400, ""),
        ("pods", pod(json!({"serviceAccountName": "nosuch"})), 403, ""),
        ("pods", pod(json!({"priorityClassName": "nosuch"})), 403, ""),
        ("pods", container(json!({"env": [{"name": "1A"}]})), 201, ""),
        ("pods", json!({}), 422, "FieldValueRequired spec.containers"),
        (
            "pods",
            container(json!({"ports": [{"containerPort": 0}]})),
            422,
            "FieldValueRequired spec.containers[0].ports[0].containerPort",
        ),
        (
            "pods",
            container(
                json!({"ports": [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]}),
            ),
            422,
            "FieldValueDuplicate spec.containers[0].ports[1].name",
        ),
        (
            "pods",
            container(json!({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}})),
            422,
            "FieldValueInvalid spec.containers[0].resources.requests",
        ),
        (
            "pods",
            pod(json!({"initContainers": [{"name": "c", "image": "registry.example/i:1"}]})),
            422,
            "FieldValueDuplicate spec.initContainers[0].name",
        ),
        ("pods", pod(json!({"restartPolicy": "Maybe"})), 422, "FieldValueNotSupported spec.restartPolicy"),
        ("secrets", json!({"data": {"a": "not base64!"}}), 400, ""),
        ("secrets", json!({"stringData": {"a b": "c"}}), 422, "FieldValueInvalid data[a b]"),
        ("configmaps", json!({"data": {"..": "c"}}), 422, "FieldValueInvalid data[..]"),
        ("persistentvolumeclaims", claim("0"), 422, "FieldValueInvalid spec.resources[storage]"),
        (
            "resourcequotas",
            json!({"spec": {"hard": {"pods": "-1"}}}),
            422,
            "FieldValueInvalid spec.hard[pods]",
        ),
    ] {
        let (found, causes) = match try_out(cluster, plural, &object).await {
            Ok(_) => (201, Vec::new()),
            Err(status) => (status.code, status.details.map(|details| details.causes).unwrap_or_default()),
        };
        let causes: Vec<_> = causes.iter().map(|cause| format!("{} {}", cause.reason, cause.field)).collect();
        assert_eq!((found, causes.concat().as_str()), (code, cause), "{plural} {object}");
    }
}
