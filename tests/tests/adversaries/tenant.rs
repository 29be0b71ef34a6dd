//! A user of the cluster who may create namespaces, and objects in their own.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

/// A site whose labs have namespaces that stay.
fn retaining(config: &mut Value) {
    config["kubernetes"] = json!({ "namespaces": "retain" });
}

async fn make(namespaces: &Api<Namespace>, metadata: Value) -> Namespace {
    let namespace = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap()
}

/// Makes a namespace with all visible properties of one that the service has made.
async fn copy(namespaces: &Api<Namespace>, name: &str, of: &ObjectMeta) {
    make(namespaces, json!({ "name": name, "labels": of.labels, "annotations": of.annotations })).await;
}

async fn remove(namespaces: &Api<Namespace>, name: &str) {
    namespaces.delete(name, &DeleteParams::default()).await.unwrap();
    until_some(async || namespaces.get_opt(name).await.unwrap().is_none().then_some(())).await;
}

/// Checks that a lab of this user fails with the reason, and that nothing was put into the namespace.
async fn is_refused(service: &Service, user: &str) {
    let client = service.user(user).unwrap();
    client.spawn_to_end(user).await.unwrap();
    let lab = client.lab(user).await.unwrap().json().unwrap();
    assert_eq!((&lab["status"], &lab["reason"]), (&json!("failed"), &json!("NamespaceTaken")), "{lab:#}");
    let message = lab["message"].as_str().unwrap();
    assert!(message.contains("kubernetes.existing_namespaces"), "{message}");
    let (cluster, namespace) = (service.cluster().await.unwrap(), format!("nublado-{user}"));
    let secrets = Api::<Secret>::namespaced(cluster.clone(), &namespace);
    let maps = Api::<ConfigMap>::namespaced(cluster, &namespace);
    assert!(secrets.list(&ListParams::default()).await.unwrap().items.is_empty(), "no Secret is there");
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty(), "nor a ConfigMap");
}

#[tokio::test]
async fn a_namespace_that_somebody_made_first_receives_nothing() {
    let service = Service::start_with(BINARY, retaining).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
    make(&namespaces, json!({ "name": "nublado-ada" })).await;
    is_refused(&service, "ada").await;

    let grace = service.user("grace").unwrap();
    assert_eq!(grace.spawn_to_end("grace").await.unwrap().last().unwrap().kind, "complete");
    let made = namespaces.get("nublado-grace").await.unwrap().metadata;
    copy(&namespaces, "nublado-eve", &made).await;
    is_refused(&service, "eve").await;
}

/// The namespace belonged to the service. Another one has the same name now.
#[tokio::test]
async fn a_namespace_that_was_made_again_by_somebody_receives_nothing() {
    let mut service = Service::start_with(BINARY, retaining).await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    ada.stop_to_end("ada").await.unwrap();
    for restart in [false, true] {
        if restart {
            service.crash_and_restart().await.unwrap();
        }
        let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
        let made = namespaces.get("nublado-ada").await.unwrap().metadata;
        remove(&namespaces, "nublado-ada").await;
        copy(&namespaces, "nublado-ada", &made).await;
        is_refused(&service, "ada").await;
        remove(&namespaces, "nublado-ada").await;
        let events = ada.spawn_to_end("ada").await.unwrap();
        assert_eq!(events.last().unwrap().kind, "complete", "the service makes it anew: {events:#?}");
        ada.stop_to_end("ada").await.unwrap();
    }
}

#[tokio::test]
async fn what_the_service_or_the_operator_has_made_is_used_again() {
    let mut service = Service::start_with(BINARY, |config| {
        retaining(config);
        config["kubernetes"]["existing_namespaces"] = json!(["nublado-course-*"]);
    })
    .await
    .unwrap();
    let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
    make(&namespaces, json!({ "name": "nublado-course-1" })).await;
    for restart in [false, true] {
        if restart {
            service.crash_and_restart().await.unwrap();
        }
        for user in ["ada", "course-1"] {
            let client = service.user(user).unwrap();
            for _ in 0..2 {
                let events = client.spawn_to_end(user).await.unwrap();
                assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
                client.stop_to_end(user).await.unwrap();
            }
        }
    }
}

/// The service ends after it has created a namespace, and before it has recorded the uid.
#[tokio::test]
async fn a_namespace_is_the_service_s_also_when_it_ended_before_it_knew_the_uid() {
    let mut service = Service::start_with(BINARY, retaining).await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    ada.stop_to_end("ada").await.unwrap();
    let cluster = service.cluster().await.unwrap();
    let mark = Api::<Namespace>::all(cluster.clone()).get("nublado-ada").await.unwrap().metadata.annotations;
    let mark = mark.unwrap()["wasmspawner.io/made"].clone();
    let records: Api<ConfigMap> = Api::namespaced(cluster, "wasmspawner");
    let shards =
        records.list(&ListParams::default().labels("wasmspawner.io/records=wasmspawner-namespaces")).await;
    let shard = shards.unwrap().items.remove(0).metadata.name.unwrap();
    let begun = Patch::Merge(json!({ "data": { "nublado-ada": format!("begun {mark}") } }));
    records.patch(&shard, &PatchParams::default(), &begun).await.unwrap();
    service.crash_and_restart().await.unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    ada.stop_to_end("ada").await.unwrap();

    // Since the start, the service knows the namespace by its uid, and no longer trusts the mark.
    let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
    let made = namespaces.get("nublado-ada").await.unwrap().metadata;
    remove(&namespaces, "nublado-ada").await;
    copy(&namespaces, "nublado-ada", &made).await;
    is_refused(&service, "ada").await;
}

/// A namespace of the service is being deleted, and the tenant makes the next one of its name as soon as it is gone.
#[tokio::test]
async fn a_namespace_that_is_being_deleted_is_waited_for() {
    let service = Service::start_with(BINARY, retaining).await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    ada.stop_to_end("ada").await.unwrap();
    let cluster = service.cluster().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(cluster.clone());
    let maps: Api<ConfigMap> = Api::namespaced(cluster.clone(), "nublado-ada");
    let held = json!({ "metadata": { "name": "held", "finalizers": ["example.org/held"] } });
    maps.create(&PostParams::default(), &serde_json::from_value(held).unwrap()).await.unwrap();
    let old = namespaces.get("nublado-ada").await.unwrap().metadata.uid;
    namespaces.delete("nublado-ada", &DeleteParams::default()).await.unwrap();
    assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
    until_some(async || {
        let reads = service.log().contains("create Namespace nublado-ada");
        let waits = ada.lab("ada").await.unwrap().json().unwrap()["status"] == "starting";
        (reads || waits).then_some(())
    })
    .await;
    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("held", &PatchParams::default(), &released).await.unwrap();
    // Whichever client is first, the tenant's namespace receives nothing.
    let own = serde_json::from_value(json!({ "metadata": { "name": "nublado-ada" } })).unwrap();
    until_some(async || {
        let _ = namespaces.create(&PostParams::default(), &own).await;
        let now = namespaces.get_opt("nublado-ada").await.unwrap()?;
        (now.metadata.uid != old).then_some(())
    })
    .await;
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    let secrets = Api::<Secret>::namespaced(cluster, "nublado-ada");
    let received = secrets.list(&ListParams::default()).await.unwrap().items.len();
    let made = namespaces.get("nublado-ada").await.unwrap().metadata.annotations.unwrap_or_default();
    if made.contains_key("wasmspawner.io/made") {
        assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    } else {
        assert_eq!((events.last().unwrap().kind.as_str(), received), ("failed", 0), "{events:#?}");
    }
}
