//! The empty namespace of a lab that was stopped is kept for a while, and the next lab of the same server gets it.

use k8s_openapi::api::core::v1::{
    ConfigMap, LimitRange, Namespace, PersistentVolumeClaim, Pod, ResourceQuota, Secret, ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Client as Kube;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use super::records::{gone, records};
use super::running::until;
use crate::BINARY;

const NAMESPACE: &str = "nublado-ada";

fn for_long(config: &mut Value) {
    config["embedded"]["keep_labs"] = true.into();
}

/// Keeps namespaces so briefly that a test sees them go.
fn briefly(config: &mut Value) {
    for_long(config);
    config["kubernetes"]["delete_namespaces_after"] = "100ms".into();
}

async fn starts(ada: &Client) {
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
}

async fn stops(ada: &Client) {
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    until(ada, "ada", Value::is_null).await;
}

async fn namespaces(service: &Service) -> Api<Namespace> {
    Api::all(service.cluster().await.unwrap())
}

async fn uid(service: &Service) -> String {
    namespaces(service).await.get(NAMESPACE).await.unwrap().metadata.uid.unwrap()
}

async fn names<K>(client: &Kube) -> Vec<String>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    let found = api.list(&ListParams::default()).await.unwrap();
    found.items.into_iter().filter_map(|object| object.meta().name.clone()).collect()
}

/// The names of all that labs have in their namespace.
async fn content(service: &Service) -> Vec<String> {
    let client = service.cluster().await.unwrap();
    let mut all = names::<Pod>(&client).await;
    all.extend(names::<ConfigMap>(&client).await);
    all.extend(names::<Secret>(&client).await);
    all.extend(names::<ServiceAccount>(&client).await);
    all.extend(names::<PersistentVolumeClaim>(&client).await);
    all.extend(names::<ResourceQuota>(&client).await);
    all.extend(names::<LimitRange>(&client).await);
    all.extend(names::<NetworkPolicy>(&client).await);
    all.retain(|name| name != "default" && name != "kube-root-ca.crt");
    all
}

#[tokio::test]
async fn the_next_lab_of_the_server_gets_the_namespace_and_nothing_in_it() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    let claim = json!({ "options": { "size": "small" }, "env": { "SECRET": "of-the-first" } });
    assert_eq!(ada.spawn_with("ada", &claim).await.unwrap().status, 303);
    ada.events("ada").await.unwrap().to_end().await.unwrap();
    let first = uid(&service).await;
    assert!(content(&service).await.len() > 3);
    stops(&ada).await;
    assert!(content(&service).await.is_empty(), "{:?}", content(&service).await);
    assert_eq!(ada.get(&format!("{PREFIX}/labs/ada")).await.unwrap().status, 404);
    let everybody =
        service.hub().unwrap().get(&format!("{PREFIX}/labs?status=all")).await.unwrap().json().unwrap();
    assert_eq!(everybody, json!([]));
    let orphans = service.admin().unwrap().get(&format!("{PREFIX}/orphans")).await.unwrap().json().unwrap();
    assert_eq!(orphans, json!([]), "the namespace belongs to a record");

    starts(&ada).await;
    assert_eq!(uid(&service).await, first);
    let maps: Api<ConfigMap> = Api::namespaced(service.cluster().await.unwrap(), NAMESPACE);
    let env = maps.get("nb-ada-env").await.unwrap().data.unwrap();
    assert!(!env.values().any(|value| value == "of-the-first"));
}

#[tokio::test]
async fn after_a_while_the_namespace_is_deleted_and_then_the_record() {
    let service = Service::start_with(BINARY, briefly).await.unwrap();
    let ada = service.user("ada").unwrap();
    starts(&ada).await;
    stops(&ada).await;
    gone(&records(&service).await, "lab-ada").await;
    assert!(namespaces(&service).await.get_opt(NAMESPACE).await.unwrap().is_none());
    starts(&ada).await;
}

#[tokio::test]
async fn a_restart_of_the_service_keeps_the_namespace() {
    let mut service = Service::start_with(BINARY, for_long).await.unwrap();
    let ada = service.user("ada").unwrap();
    starts(&ada).await;
    let first = uid(&service).await;
    stops(&ada).await;
    service.crash_and_restart().await.unwrap();
    assert_eq!(ada.get(&format!("{PREFIX}/labs/ada")).await.unwrap().status, 404);
    starts(&ada).await;
    assert_eq!(uid(&service).await, first);
    service.crash_and_restart().await.unwrap();
    stops(&ada).await;
    assert!(content(&service).await.is_empty());
    service.reconfigure(briefly).unwrap();
    service.crash_and_restart().await.unwrap();
    gone(&records(&service).await, "lab-ada").await;
    assert!(namespaces(&service).await.get_opt(NAMESPACE).await.unwrap().is_none());
}

/// The labels of a namespace say what may happen in it, its level of Pod Security for example.
#[tokio::test]
async fn a_lab_that_needs_another_namespace_does_not_get_the_one_that_was_kept() {
    let mut service = Service::start_with(BINARY, for_long).await.unwrap();
    let ada = service.user("ada").unwrap();
    starts(&ada).await;
    let first = uid(&service).await;
    stops(&ada).await;
    let with_label = |config: &mut Value| {
        for_long(config);
        config["lab"]["labels"] = json!({ "example.org/team": "physics" });
    };
    service.reconfigure(with_label).unwrap();
    service.crash_and_restart().await.unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert!(format!("{events:?}").contains("needs another"), "{events:#?}");
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let namespace = namespaces(&service).await.get(NAMESPACE).await.unwrap();
    assert_ne!(namespace.metadata.uid.as_ref(), Some(&first));
    assert_eq!(namespace.metadata.labels.unwrap()["example.org/team"], "physics");
}

/// Somebody who may make namespaces puts one of their own in place of the one that was kept, with all its labels. They
/// would receive the tokens of the next lab.
#[tokio::test]
async fn a_copy_of_the_kept_namespace_gets_no_lab() {
    let service = Service::start_with(BINARY, for_long).await.unwrap();
    let ada = service.user("ada").unwrap();
    starts(&ada).await;
    stops(&ada).await;
    let all = namespaces(&service).await;
    let mut copy = all.get(NAMESPACE).await.unwrap();
    all.delete(NAMESPACE, &DeleteParams::default()).await.unwrap();
    gone(&all, NAMESPACE).await;
    (copy.metadata.uid, copy.metadata.resource_version, copy.metadata.creation_timestamp) =
        (None, None, None);
    let theirs = all.create(&PostParams::default(), &copy).await.unwrap().metadata.uid.unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    if events.last().unwrap().kind == "complete" {
        assert_ne!(uid(&service).await, theirs);
    }
    let secrets: Api<Secret> = Api::namespaced(service.cluster().await.unwrap(), NAMESPACE);
    if uid(&service).await == theirs {
        assert!(secrets.list(&ListParams::default()).await.unwrap().items.is_empty());
    }
}

/// Whoever has a token for the Kubernetes API can leave objects that the service does not know.
#[tokio::test]
async fn the_namespace_of_a_lab_with_a_token_of_kubernetes_is_not_kept() {
    let with_token = |config: &mut Value| {
        for_long(config);
        config["lab"]["security"]["service_account_token"] = true.into();
    };
    let service = Service::start_with(BINARY, with_token).await.unwrap();
    let ada = service.user("ada").unwrap();
    starts(&ada).await;
    stops(&ada).await;
    gone(&records(&service).await, "lab-ada").await;
    assert!(namespaces(&service).await.get_opt(NAMESPACE).await.unwrap().is_none());
}

/// A lab may get a namespace of an environment instead, so the one that was kept goes first.
#[tokio::test]
async fn a_server_starts_again_where_there_are_environments() {
    let service = Service::start_with(BINARY, |config| config["environments"] = json!({})).await.unwrap();
    let ada = service.user("ada").unwrap();
    for _ in 0..3 {
        starts(&ada).await;
        stops(&ada).await;
    }
}

#[tokio::test]
async fn nothing_is_kept_of_a_lab_whose_record_is_deleted() {
    let service = Service::start_with(BINARY, for_long).await.unwrap();
    let ada = service.user("ada").unwrap();
    starts(&ada).await;
    stops(&ada).await;
    let records = records(&service).await;
    records.delete("lab-ada", &DeleteParams::default()).await.unwrap();
    gone(&records, "lab-ada").await;
    assert!(namespaces(&service).await.get_opt(NAMESPACE).await.unwrap().is_none());
    // The driver learns of it a moment later.
    until_some(async || (ada.spawn("ada").await.unwrap().status == 303).then_some(())).await;
}

/// The service dies at each request by which a kept namespace is emptied, deleted or used again.
#[tokio::test]
async fn a_crash_while_a_namespace_is_kept_loses_nothing() {
    for point in [
        "before delete each Secret",
        "after delete each Secret",
        "before delete Namespace",
        "after delete Namespace",
        "before delete Spawn",
    ] {
        let mut service = Service::prepare(BINARY, briefly).unwrap();
        service.meets(&format!("abort {point}"));
        service.run().await.unwrap();
        let ada = service.user("ada").unwrap();
        starts(&ada).await;
        // The service may die before it answers.
        let _ = ada.stop("ada").await;
        service.death().await.unwrap_or_else(|error| panic!("{point}: {error}"));
        service.run().await.unwrap();
        until(&ada, "ada", Value::is_null).await;
        starts(&ada).await;
        stops(&ada).await;
        gone(&records(&service).await, "lab-ada").await;
        let left = namespaces(&service).await.get_opt(NAMESPACE).await.unwrap();
        assert!(left.is_none(), "{point}: {left:?}");
    }
}
