//! Lists: selectors, pages, forms.

use crate::cluster::{Cluster, config_map, object, refused};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, ObjectList, PostParams};
use serde_json::json;

fn names<K: ResourceExt + Clone>(list: &ObjectList<K>) -> Vec<String> {
    list.items.iter().map(ResourceExt::name_any).collect()
}

pub(crate) async fn labels_select(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    for (name, tier) in [("a", "gold"), ("b", "silver"), ("c", "gold")] {
        let map = object(json!({"metadata": {"name": name, "labels": {"tier": tier, "app": "lab"}}}));
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    for (selector, expected) in [
        ("tier=gold", &["a", "c"][..]),
        ("tier!=gold,app=lab", &["b"]),
        ("tier in (gold,silver)", &["a", "b", "c"]),
        ("app=lab,tier notin (gold)", &["b"]),
        ("tier,!nosuch", &["a", "b", "c"]),
        ("nosuch", &[]),
    ] {
        let list = maps.list(&ListParams::default().labels(selector)).await.unwrap();
        assert_eq!(names(&list), expected, "{selector}");
    }
    assert_eq!(refused(maps.list(&ListParams::default().labels("a b")).await).code, 400);
}

pub(crate) async fn fields_select(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    for name in ["a", "b"] {
        maps.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    }
    let list = maps.list(&ListParams::default().fields("metadata.name=b")).await.unwrap();
    assert_eq!(names(&list), ["b"]);
    let secrets: Api<Secret> = cluster.api();
    for (name, kind) in [("s", "Opaque"), ("t", "example.com/token")] {
        let secret = object(json!({"metadata": {"name": name}, "type": kind}));
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }
    let list = secrets.list(&ListParams::default().fields("type=example.com/token")).await.unwrap();
    assert_eq!(names(&list), ["t"]);
    let pods: Api<Pod> = cluster.api();
    pods.create(&PostParams::default(), &crate::cluster::pod("p")).await.unwrap();
    for (selector, count) in
        [("status.phase=Pending", 1), ("status.phase!=Pending", 0), ("spec.nodeName=", 1)]
    {
        let list = pods.list(&ListParams::default().fields(selector)).await.unwrap();
        assert_eq!(list.items.len(), count, "{selector}");
    }
}

pub(crate) async fn unknown_field_selectors_are_refused(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let status = refused(maps.list(&ListParams::default().fields("data.k=1")).await);
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
}

pub(crate) async fn pages_are_of_one_moment(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    for i in 0..5 {
        maps.create(&PostParams::default(), &config_map(&format!("m{i}"), "1")).await.unwrap();
    }
    let all = ListParams::default().fields("metadata.name!=kube-root-ca.crt").limit(2);
    let first = maps.list(&all).await.unwrap();
    assert_eq!(names(&first), ["m0", "m1"]);
    // What happens meanwhile is not in the list.
    maps.create(&PostParams::default(), &config_map("m2a", "1")).await.unwrap();
    maps.delete("m3", &DeleteParams::default()).await.unwrap();
    let second = maps.list(&all.clone().continue_token(&first.metadata.continue_.unwrap())).await.unwrap();
    assert_eq!(names(&second), ["m2", "m3"]);
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
    let third = maps.list(&all.clone().continue_token(&second.metadata.continue_.unwrap())).await.unwrap();
    assert_eq!(names(&third), ["m4"]);
    assert_eq!(third.metadata.continue_.unwrap_or_default(), "");
}

pub(crate) async fn a_broken_continue_token_is_refused(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let status = refused(maps.list(&ListParams::default().limit(1).continue_token("nonsense")).await);
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
}

pub(crate) async fn metadata_alone_can_be_listed(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let list = maps.list_metadata(&ListParams::default().fields("metadata.name=a")).await.unwrap();
    assert_eq!(names(&list), ["a"]);
    let one = maps.get_metadata("a").await.unwrap();
    assert_eq!(one.types.unwrap().kind, "PartialObjectMetadata");
}
