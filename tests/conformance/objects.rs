//! Creating, reading and replacing single objects.

use crate::cluster::{Cluster, config_map, object, refused};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, PostParams};
use serde_json::json;

pub(crate) async fn created_objects_get_what_the_server_gives(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let made = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    assert_eq!(made.metadata.namespace.as_deref(), Some(cluster.namespace.as_str()));
    assert!(made.metadata.uid.is_some() && made.metadata.creation_timestamp.is_some());
    assert!(made.metadata.resource_version.is_some());
    let read = maps.get("a").await.unwrap();
    assert_eq!(read.metadata.uid, made.metadata.uid);
    assert_eq!(read.data.unwrap()["k"], "1");
}

pub(crate) async fn a_name_is_taken_once(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let status = refused(maps.create(&PostParams::default(), &config_map("a", "2")).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "AlreadyExists"));
    let details = status.details.unwrap();
    assert_eq!((details.kind.as_str(), details.name.as_str()), ("configmaps", "a"));
}

pub(crate) async fn names_are_generated(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let template: ConfigMap = object(json!({"metadata": {"generateName": "lab-"}}));
    let one = maps.create(&PostParams::default(), &template).await.unwrap().metadata.name.unwrap();
    let two = maps.create(&PostParams::default(), &template).await.unwrap().metadata.name.unwrap();
    assert!(one.starts_with("lab-") && one.len() == "lab-".len() + 5, "{one}");
    assert_ne!(one, two);
}

pub(crate) async fn what_is_missing_is_told(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let status = refused(maps.get("nosuch").await);
    assert_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
    assert_eq!(status.message, "configmaps \"nosuch\" not found");
    assert!(maps.get_opt("nosuch").await.unwrap().is_none());

    let elsewhere: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "no-such-namespace");
    let status = refused(elsewhere.create(&PostParams::default(), &config_map("a", "1")).await);
    assert_eq!((status.code, status.message.as_str()), (404, "namespaces \"no-such-namespace\" not found"));
}

pub(crate) async fn stale_updates_conflict(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let first = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let mut second = first.clone();
    second.data = Some([("k".to_owned(), "2".to_owned())].into());
    let second = maps.replace("a", &PostParams::default(), &second).await.unwrap();
    assert_ne!(second.metadata.resource_version, first.metadata.resource_version);
    let status = refused(maps.replace("a", &PostParams::default(), &first).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(maps.get("a").await.unwrap().data.unwrap()["k"], "2");
}

pub(crate) async fn updates_without_a_version_win(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let made = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let replaced = maps.replace("a", &PostParams::default(), &config_map("a", "2")).await.unwrap();
    assert_eq!(replaced.data.unwrap()["k"], "2");
    assert_eq!(replaced.metadata.uid, made.metadata.uid, "still the same object");
    let status = refused(maps.replace("b", &PostParams::default(), &config_map("b", "2")).await);
    assert_eq!(status.code, 404, "an update does not create");
}

pub(crate) async fn updates_that_change_nothing_write_nothing(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let made = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let same = maps.replace("a", &PostParams::default(), &made).await.unwrap();
    assert_eq!(same.metadata.resource_version, made.metadata.resource_version);
}

pub(crate) async fn a_dry_run_stores_nothing(cluster: &Cluster) {
    let maps: Api<ConfigMap> = cluster.api();
    let dry = PostParams { dry_run: true, field_manager: None };
    let made = maps.create(&dry, &config_map("a", "1")).await.unwrap();
    assert!(made.metadata.uid.is_some());
    assert!(maps.get_opt("a").await.unwrap().is_none());
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let answered = maps.replace("a", &dry, &config_map("a", "2")).await.unwrap();
    assert_eq!(answered.data.unwrap()["k"], "2");
    assert_eq!(maps.get("a").await.unwrap().data.unwrap()["k"], "1");
}

pub(crate) async fn unknown_fields_are_refused_when_asked(cluster: &Cluster) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dat": {"k": "v"}});
    let path = "/api/v1/namespaces/{ns}/configmaps";
    let strict = format!("{path}?fieldValidation=Strict");
    let status = cluster.send("POST", &strict, "application/json", &map).await.unwrap_err();
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
    assert!(status.message.contains("unknown field \"dat\""), "{}", status.message);
    let lenient = format!("{path}?fieldValidation=Ignore");
    let made = cluster.send("POST", &lenient, "application/json", &map).await.unwrap();
    assert!(made.get("dat").is_none());

    let wrong = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": 7});
    assert_eq!(cluster.send("POST", path, "application/json", &wrong).await.unwrap_err().code, 400);
    let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}});
    assert_eq!(cluster.send("POST", path, "application/json", &other).await.unwrap_err().code, 400);
}

pub(crate) async fn secrets_take_strings(cluster: &Cluster) {
    let secrets: Api<Secret> = cluster.api();
    let secret = object(json!({"metadata": {"name": "s"}, "stringData": {"token": "t0p"}}));
    let made: Secret = secrets.create(&PostParams::default(), &secret).await.unwrap();
    assert_eq!(made.data.unwrap()["token"].0, b"t0p");
    assert_eq!(made.type_.as_deref(), Some("Opaque"));
    assert!(made.string_data.is_none());
}
