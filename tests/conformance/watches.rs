//! Watches.

use crate::cluster::{Cluster, config_map, object, soon};
use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use std::pin::pin;

/// The next event but bookmarks, in short: `+a`, `~a`, `-a`.
async fn next(events: &mut (impl Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin)) -> String {
    loop {
        let event = soon("an event", events.next()).await.expect("the watch goes on").unwrap();
        return match event {
            WatchEvent::Added(object) => format!("+{}", object.name_any()),
            WatchEvent::Modified(object) => format!("~{}", object.name_any()),
            WatchEvent::Deleted(object) => format!("-{}", object.name_any()),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => panic!("{status:?}"),
        };
    }
}

fn ours() -> WatchParams {
    WatchParams::default().labels("ours")
}

fn labelled(name: &str, labels: &serde_json::Value) -> ConfigMap {
    object(json!({"metadata": {"name": name, "labels": labels}}))
}

pub(crate) async fn a_watch_goes_on_where_a_list_ended(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    maps.create(&PostParams::default(), &labelled("before", &json!({"ours": ""}))).await.unwrap();
    let revision = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    maps.create(&PostParams::default(), &labelled("a", &json!({"ours": ""}))).await.unwrap();
    let mut events = pin!(maps.watch(&ours(), &revision).await.unwrap());
    assert_eq!(next(&mut events).await, "+a");
    maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": "2"}}))).await.unwrap();
    assert_eq!(next(&mut events).await, "~a");
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(next(&mut events).await, "-a");
}

pub(crate) async fn a_watch_without_a_version_begins_with_what_is_there(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    maps.create(&PostParams::default(), &labelled("a", &json!({"ours": ""}))).await.unwrap();
    let mut events = pin!(maps.watch(&ours(), "0").await.unwrap());
    assert_eq!(next(&mut events).await, "+a");
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(next(&mut events).await, "-a");
}

pub(crate) async fn objects_come_and_go_as_they_match(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let revision = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut events = pin!(maps.watch(&WatchParams::default().labels("tier=gold"), &revision).await.unwrap());
    maps.create(&PostParams::default(), &labelled("a", &json!({"tier": "silver"}))).await.unwrap();
    let tier = |tier: &str| Patch::Merge(json!({"metadata": {"labels": {"tier": tier}}}));
    maps.patch("a", &PatchParams::default(), &tier("gold")).await.unwrap();
    assert_eq!(next(&mut events).await, "+a");
    maps.patch("a", &PatchParams::default(), &tier("silver")).await.unwrap();
    assert_eq!(next(&mut events).await, "-a");
    maps.patch("a", &PatchParams::default(), &tier("gold")).await.unwrap();
    assert_eq!(next(&mut events).await, "+a");
}

pub(crate) async fn a_watch_ends_when_asked(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let events = maps.watch(&ours().timeout(1), "0").await.unwrap();
    let mut events: Vec<_> = soon("the watch ends", events.try_collect()).await.unwrap();
    // A bookmark just before the end says where to go on.
    events.retain(|event| !matches!(event, WatchEvent::Bookmark(_)));
    assert!(events.is_empty(), "{events:?}");
}

pub(crate) async fn initial_events_end_with_a_bookmark(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let params = WatchParams::default().fields("metadata.name=a").initial_events();
    let mut events = pin!(maps.watch(&params, "").await.unwrap());
    assert_eq!(next(&mut events).await, "+a");
    let event = soon("a bookmark", events.next()).await.unwrap().unwrap();
    let WatchEvent::Bookmark(bookmark) = event else { panic!("{event:?}") };
    assert_eq!(bookmark.metadata.annotations["k8s.io/initial-events-end"], "true");
}
