//! The four patches.

use crate::cluster::{Cluster, config_map, object, pod, refused};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

pub(crate) async fn json_patches_apply(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let path = "/api/v1/namespaces/{ns}/configmaps/a";
    let patch = json!([
        {"op": "test", "path": "/data/k", "value": "1"},
        {"op": "replace", "path": "/data/k", "value": "2"},
        {"op": "add", "path": "/data/l", "value": "3"},
    ]);
    let patched = cluster.send("PATCH", path, "application/json-patch+json", &patch).await.unwrap();
    assert_eq!(patched["data"], json!({"k": "2", "l": "3"}));
}

pub(crate) async fn a_failed_test_of_a_json_patch_changes_nothing(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let path = "/api/v1/namespaces/{ns}/configmaps/a";
    let patch = json!([
        {"op": "replace", "path": "/data/k", "value": "2"},
        {"op": "test", "path": "/data/k", "value": "other"},
    ]);
    let status = cluster.send("PATCH", path, "application/json-patch+json", &patch).await.unwrap_err();
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(maps.get("a").await.unwrap().data.unwrap()["k"], "1");
}

pub(crate) async fn merge_patches_remove_by_null(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let patch = json!({"metadata": {"labels": {"x": "y"}}, "data": {"k": null, "l": "2"}});
    let patched = maps.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    assert_eq!(patched.data.unwrap(), [("l".to_owned(), "2".to_owned())].into());
    assert_eq!(patched.metadata.labels.unwrap()["x"], "y");
    let missing = maps.patch("b", &PatchParams::default(), &Patch::Merge(json!({}))).await;
    assert_eq!(refused(missing).code, 404);
}

pub(crate) async fn strategic_patches_merge_lists_by_key(cluster: &Cluster) {
    let pods: Api<Pod> = cluster.api();
    let two = json!({"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "a", "image": "registry.example/i:1"}, {"name": "b", "image": "registry.example/j:1"}]}});
    pods.create(&PostParams::default(), &object(two)).await.unwrap();
    let patch = json!({"spec": {"containers": [{"name": "b", "image": "registry.example/j:2"}],
        "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}]}});
    let patched = pods.patch("p", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    let images: Vec<_> = patched.spec.unwrap().containers.into_iter().filter_map(|c| c.image).collect();
    assert_eq!(images, ["registry.example/i:1", "registry.example/j:2"]);
    let conditions = async |conditions: Value| {
        let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
        let patched = pods.patch_status("p", &PatchParams::default(), &patch).await.unwrap();
        let conditions = patched.status.unwrap().conditions.unwrap();
        let conditions = conditions.into_iter().map(|c| format!("{}={}", c.type_, c.status));
        conditions.filter(|c| c.starts_with("example.com/")).collect::<Vec<_>>()
    };
    let [one, two] = ["example.com/1", "example.com/2"];
    conditions(json!([{"type": one, "status": "False"}, {"type": two, "status": "True"}])).await;
    let changed =
        conditions(json!([{"type": one, "status": "True"}, {"type": two, "$patch": "delete"}])).await;
    assert_eq!(changed, ["example.com/1=True"]);
}

pub(crate) async fn a_forced_apply_creates_and_changes(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let manager = PatchParams::apply("one").force();
    for value in ["1", "2"] {
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
        let applied = maps.patch("a", &manager, &Patch::Apply(map)).await.unwrap();
        assert_eq!(applied.data.unwrap()["k"], value);
    }
}

pub(crate) async fn apply_is_idempotent(cluster: &Cluster) {
    let pods: Api<Pod> = cluster.api();
    let lab = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"x": "y"}}, "spec": {
        "containers": [{"name": "c", "image": "registry.example/i:1", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "500m"}}, "env": [{"name": "A", "value": "b"}]}],
        "volumes": [{"name": "v"}]}});
    let manager = PatchParams::apply("one").force();
    let first: Pod = pods.patch("p", &manager, &Patch::Apply(&lab)).await.unwrap();
    let second = pods.patch("p", &manager, &Patch::Apply(&lab)).await.unwrap();
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
}

pub(crate) async fn patches_respect_versions(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let first = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let at = |version: &str, value: &str| {
        Patch::Merge(json!({"metadata": {"resourceVersion": version}, "data": {"k": value}}))
    };
    let version = first.metadata.resource_version.unwrap();
    maps.patch("a", &PatchParams::default(), &at(&version, "2")).await.unwrap();
    let status = refused(maps.patch("a", &PatchParams::default(), &at(&version, "3")).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
}

pub(crate) async fn unknown_kinds_of_patches_are_refused(cluster: &Cluster) {
    let pods: Api<Pod> = cluster.api();
    pods.create(&PostParams::default(), &pod("p")).await.unwrap();
    let path = "/api/v1/namespaces/{ns}/pods/p";
    let status = cluster.send("PATCH", path, "application/json", &json!({})).await.unwrap_err();
    assert_eq!(status.code, 415);
    let broken = json!({"metadata": {"labels": {"x": "not a label!"}}});
    let broken = pods.patch("p", &PatchParams::default(), &Patch::Merge(broken)).await;
    assert_eq!(refused(broken).code, 422, "what a patch makes is held to the rules");
}
