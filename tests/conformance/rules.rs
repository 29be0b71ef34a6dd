//! The rules that the API server checks objects against.

use crate::cluster::{Cluster, config_map, object, pod, refused};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

pub(crate) async fn invalid_objects_are_refused_with_causes(cluster: &Cluster) {
    let container = |extra: Value| {
        let mut container = json!({"name": "c", "image": "registry.example/i:1"});
        for (key, value) in extra.as_object().unwrap() {
            container[key] = value.clone();
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}})
    };
    let named = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    for (kind, body, field) in [
        ("configmaps", named("Not_a_name"), "metadata.name"),
        ("configmaps", named(""), "metadata.name"),
        (
            "configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "no spaces"}}}),
            "metadata.labels",
        ),
        (
            "configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a/b": ""}}),
            "data[a/b]",
        ),
        (
            "pods",
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}),
            "spec.containers",
        ),
        ("pods", container(json!({"name": "Big"})), "spec.containers[0].name"),
        ("pods", container(json!({"image": ""})), "spec.containers[0].image"),
        (
            "pods",
            container(json!({"volumeMounts": [{"name": "nosuch", "mountPath": "/x"}]})),
            "spec.containers[0].volumeMounts[0].name",
        ),
        (
            "pods",
            container(json!({"ports": [{"containerPort": 70000}]})),
            "spec.containers[0].ports[0].containerPort",
        ),
    ] {
        let path = format!("/api/v1/namespaces/{{ns}}/{kind}");
        let status = cluster.send("POST", &path, "application/json", &body).await.unwrap_err();
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{body}");
        let fields: Vec<_> = status.details.unwrap().causes.into_iter().map(|cause| cause.field).collect();
        assert!(fields.contains(&field.to_owned()), "{field} in {fields:?}");
    }
}

pub(crate) async fn the_status_is_a_part_of_its_own(cluster: &Cluster) {
    let pods: Api<Pod> = cluster.api();
    let mut claimed: Pod = pod("p");
    claimed.status = Some(object(json!({"phase": "Running"})));
    let made = pods.create(&PostParams::default(), &claimed).await.unwrap();
    assert_eq!(made.status.unwrap().phase.as_deref(), Some("Pending"));
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}, "status": {"phase": "Running"}}));
    let patched = pods.patch("p", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.status.unwrap().phase.as_deref(), Some("Pending"));
    let status = json!({"spec": {"containers": null}, "status": {"phase": "Running", "podIP": "10.1.2.3"}});
    let patched = pods.patch_status("p", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    assert_eq!(patched.status.unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(patched.spec.unwrap().containers.len(), 1, "the spec stays");
}

pub(crate) async fn only_a_few_fields_of_a_pod_may_change(cluster: &Cluster) {
    let pods: Api<Pod> = cluster.api();
    pods.create(&PostParams::default(), &pod("p")).await.unwrap();
    let hostname = Patch::Merge(json!({"spec": {"hostname": "other"}}));
    let status = refused(pods.patch("p", &PatchParams::default(), &hostname).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(status.details.unwrap().causes[0].field, "spec");
    let image = json!({"spec": {"containers": [{"name": "c", "image": "registry.example/i:2"}]}});
    pods.patch("p", &PatchParams::default(), &Patch::Strategic(image)).await.unwrap();
}

pub(crate) async fn a_pod_is_bound_once(cluster: &Cluster) {
    let pods: Api<Pod> = cluster.api();
    let mut waiting: Pod = pod("p");
    waiting.spec.as_mut().unwrap().scheduler_name = Some("nobody".to_owned());
    pods.create(&PostParams::default(), &waiting).await.unwrap();
    let path = "/api/v1/namespaces/{ns}/pods/p/binding";
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "here"}});
    cluster.send("POST", path, "application/json", &binding).await.unwrap();
    let bound = pods.get("p").await.unwrap();
    assert_eq!(bound.spec.unwrap().node_name.as_deref(), Some("here"));
    let conditions = bound.status.unwrap().conditions.unwrap();
    assert!(conditions.iter().any(|c| c.type_ == "PodScheduled" && c.status == "True"));
    let status = cluster.send("POST", path, "application/json", &binding).await.unwrap_err();
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
}

pub(crate) async fn quotas_limit_a_namespace(cluster: &Cluster) {
    let quotas: Api<ResourceQuota> = cluster.api();
    let hard = json!({"pods": "2", "limits.cpu": "1"});
    quotas
        .create(&PostParams::default(), &object(json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})))
        .await
        .unwrap();
    crate::cluster::eventually("the quota is seen", async || {
        quotas.get("q").await.unwrap().status.and_then(|status| status.used).is_some()
    })
    .await;
    let pods: Api<Pod> = cluster.api();
    let asking = |name: &str, cpu: &str| -> Pod {
        object(json!({"metadata": {"name": name}, "spec": {"containers": [
            {"name": "c", "image": "registry.example/i:1", "resources": {"limits": {"cpu": cpu}}}]}}))
    };
    let status = refused(pods.create(&PostParams::default(), &pod("silent")).await);
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    pods.create(&PostParams::default(), &asking("a", "600m")).await.unwrap();
    let status = refused(pods.create(&PostParams::default(), &asking("b", "600m")).await);
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    assert!(status.message.contains("exceeded quota: q"), "{}", status.message);
    pods.create(&PostParams::default(), &asking("b", "400m")).await.unwrap();
}

pub(crate) async fn immutable_config_stays(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let mut fixed: ConfigMap = config_map("a", "1");
    fixed.immutable = Some(true);
    maps.create(&PostParams::default(), &fixed).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"k": "2"}}));
    assert_eq!(refused(maps.patch("a", &PatchParams::default(), &patch).await).code, 422);
}
