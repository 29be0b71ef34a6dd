//! Deleting, and what follows.

use crate::cluster::{Cluster, config_map, eventually, object, pod, refused};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;

pub(crate) async fn finalizers_hold_an_object_back(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let held = object(json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}));
    maps.create(&PostParams::default(), &held).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let object = maps.get("a").await.unwrap();
    assert!(object.metadata.deletion_timestamp.is_some());
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    let status = refused(maps.patch("a", &PatchParams::default(), &Patch::Merge(more)).await);
    assert_eq!(status.code, 422, "no new finalizers while it goes");
    let free = json!({"metadata": {"finalizers": null}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

async fn bind(cluster: &Cluster, name: &str) {
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"kind": "Node", "name": "no-such-node"}});
    let path = format!("/api/v1/namespaces/{{ns}}/pods/{name}/binding");
    cluster.send("POST", &path, "application/json", &binding).await.unwrap();
}

pub(crate) async fn a_pod_on_a_node_is_deleted_gracefully(cluster: &Cluster) {
    let pods: Api<Pod> = cluster.api();
    pods.create(&PostParams::default(), &pod("p")).await.unwrap();
    bind(cluster, "p").await;
    pods.delete("p", &DeleteParams::default().grace_period(20)).await.unwrap();
    let going = pods.get("p").await.unwrap();
    assert!(going.metadata.deletion_timestamp.is_some());
    assert_eq!(going.metadata.deletion_grace_period_seconds, Some(20));
    pods.delete("p", &DeleteParams::default().grace_period(60)).await.unwrap();
    assert_eq!(pods.get("p").await.unwrap().metadata.deletion_grace_period_seconds, Some(20), "never longer");
    pods.delete("p", &DeleteParams::default().grace_period(5)).await.unwrap();
    assert_eq!(pods.get("p").await.unwrap().metadata.deletion_grace_period_seconds, Some(5), "but shorter");
    pods.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(pods.get_opt("p").await.unwrap().is_none());
}

pub(crate) async fn a_pod_without_a_node_goes_at_once(cluster: &Cluster) {
    let pods: Api<Pod> = cluster.api();
    // A scheduler of its own, so that no real one is faster.
    let mut waiting: Pod = pod("p");
    waiting.spec.as_mut().unwrap().scheduler_name = Some("nobody".to_owned());
    pods.create(&PostParams::default(), &waiting).await.unwrap();
    pods.delete("p", &DeleteParams::default()).await.unwrap();
    assert!(pods.get_opt("p").await.unwrap().is_none());
}

pub(crate) async fn preconditions_guard_a_deletion(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let made = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let with = |uid: &str| {
        DeleteParams::default()
            .preconditions(Preconditions { uid: Some(uid.to_owned()), resource_version: None })
    };
    let status = refused(maps.delete("a", &with("another")).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    maps.delete("a", &with(&made.metadata.uid.unwrap())).await.unwrap();
    assert_eq!(refused(maps.delete("a", &DeleteParams::default()).await).code, 404);
}

pub(crate) async fn a_collection_is_deleted_by_selector(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    for (name, tier) in [("a", "gold"), ("b", "silver"), ("c", "gold")] {
        let map = object(json!({"metadata": {"name": name, "labels": {"tier": tier}}}));
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("tier=gold"))
        .await
        .unwrap();
    let left = maps.list(&ListParams::default().labels("tier")).await.unwrap();
    assert_eq!(left.items.len(), 1);
    assert_eq!(left.items[0].metadata.name.as_deref(), Some("b"));
}

/// An owner, and a `ConfigMap` that it owns.
async fn family(cluster: &Cluster) -> Api<ConfigMap> {
    let maps: Api<ConfigMap> = cluster.api();
    let owner = maps.create(&PostParams::default(), &config_map("owner", "1")).await.unwrap();
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner.metadata.uid, "blockOwnerDeletion": true});
    let child = object(json!({"metadata": {"name": "child", "ownerReferences": [reference]}}));
    maps.create(&PostParams::default(), &child).await.unwrap();
    maps
}

pub(crate) async fn dependents_follow_their_owner(cluster: &Cluster) {
    let maps = family(cluster).await;
    maps.delete("owner", &DeleteParams::background()).await.unwrap();
    eventually("the child goes too", async || maps.get_opt("child").await.unwrap().is_none()).await;
}

pub(crate) async fn a_namespace_goes_with_all_that_is_in_it(cluster: &Cluster) {
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let name = namespaces
        .create(&PostParams::default(), &object(json!({"metadata": {"generateName": "going-"}})))
        .await
        .unwrap()
        .metadata
        .name
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &name);
    maps.create(&PostParams::default(), &config_map("plain", "1")).await.unwrap();
    let held = object(json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}));
    maps.create(&PostParams::default(), &held).await.unwrap();

    namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
    let going = namespaces.get(&name).await.unwrap();
    assert_eq!(going.status.unwrap().phase.as_deref(), Some("Terminating"));
    let status = refused(maps.create(&PostParams::default(), &config_map("new", "1")).await);
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    assert_eq!(status.details.unwrap().causes[0].reason, "NamespaceTerminating");
    eventually("the rest is gone", async || maps.get_opt("plain").await.unwrap().is_none()).await;
    assert!(namespaces.get_opt(&name).await.unwrap().is_some(), "a finalizer holds it");

    let free = json!({"metadata": {"finalizers": null}});
    maps.patch("held", &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    eventually("the namespace is gone", async || namespaces.get_opt(&name).await.unwrap().is_none()).await;
}
