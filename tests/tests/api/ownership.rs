//! Objects that do not belong to the service are not changed, whatever their labels are.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::{until_running, until_some};

use super::records::{deleting_at_once, gone};
use super::running::until;
use crate::BINARY;

async fn make<K>(api: &Api<K>, object: Value)
where
    K: Clone + serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_foreign_namespace_fails_the_spawn_and_is_not_changed() {
    let service = Service::start(BINARY).await.unwrap();
    let client = service.cluster().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let theirs: Api<ConfigMap> = Api::namespaced(client, "nublado-ada");
    make(&namespaces, json!({ "metadata": { "name": "nublado-ada" } })).await;
    make(&theirs, json!({ "metadata": { "name": "precious" }, "data": { "a": "b" } })).await;
    let before = namespaces.get("nublado-ada").await.unwrap().metadata;

    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    let lab = ada.lab("ada").await.unwrap().json().unwrap();
    assert_eq!(lab["reason"], "NamespaceTaken", "{lab:#}");
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    until(&ada, "ada", Value::is_null).await;
    let after = namespaces.get("nublado-ada").await.unwrap().metadata;
    assert_eq!((after.resource_version, after.labels), (before.resource_version, before.labels));
    assert!(theirs.get_opt("precious").await.unwrap().is_some());
    assert_eq!(theirs.list(&kube::api::ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn objects_with_copied_labels_are_not_taken_for_labs() {
    let keeping = |config: &mut Value| {
        config["embedded"]["keep_labs"] = true.into();
        deleting_at_once(config);
    };
    let mut service = Service::start_with(BINARY, keeping).await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    let client = service.cluster().await.unwrap();
    let real: Api<Pod> = Api::namespaced(client.clone(), "nublado-ada");
    let mut meta = real.get("nb-ada").await.unwrap().metadata;
    let labels = meta.labels.take().unwrap();
    let annotations = meta.annotations.take().unwrap();

    // Another user of the cluster copies all labels of a lab: one that exists, and one that does not.
    let namespaces: Api<Namespace> = Api::all(client.clone());
    make(
        &namespaces,
        json!({ "metadata": { "name": "evil", "labels": labels, "annotations": annotations } }),
    )
    .await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "evil");
    let pod = json!({ "metadata": { "name": "nb-ada", "labels": labels, "annotations": annotations },
        "spec": { "containers": [{ "name": "notebook", "image": "x" }] } });
    make(&pods, pod).await;
    let mut other = labels.clone();
    other.insert("wasmspawner.io/spawn".to_owned(), "11111111-1111-4111-8111-111111111111".to_owned());
    make(
        &namespaces,
        json!({ "metadata": { "name": "nobody", "labels": other, "annotations": annotations } }),
    )
    .await;

    service.crash_and_restart().await.unwrap();
    until_running(&ada, "ada").await;
    let everybody = service.hub().unwrap().get("/spawner/v1/labs?status=all").await.unwrap().json().unwrap();
    assert_eq!(everybody, json!(["ada"]));
    let admin = service.admin().unwrap();
    let orphans = admin.get(&format!("{PREFIX}/orphans")).await.unwrap().json().unwrap();
    let named = |orphans: &Value| -> Vec<String> {
        let orphans = orphans.as_array().unwrap().iter();
        orphans.map(|orphan| orphan["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(named(&orphans), ["nobody"], "{orphans:#}");
    assert_eq!(
        ada.get(&format!("{PREFIX}/orphans")).await.unwrap().problem().unwrap(),
        "403 permission_denied"
    );
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
    gone(&namespaces, "nublado-ada").await;
    for name in ["evil", "nobody"] {
        let left = namespaces.get(name).await.unwrap();
        assert!(left.metadata.deletion_timestamp.is_none(), "{name} is left alone");
    }
    // The record of ada's lab is deleted last; after that, objects with its uid belong to no lab.
    until_some(async || {
        let deletion = admin.request(http::Method::DELETE, &format!("{PREFIX}/orphans"));
        let answer = admin.send(deletion).await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        named(&answer.json().unwrap()).contains(&"evil".to_owned()).then_some(())
    })
    .await;
    for name in ["evil", "nobody"] {
        gone(&namespaces, name).await;
    }
}

#[tokio::test]
async fn two_installations_do_not_change_each_others_labs() {
    let one = Service::start(BINARY).await.unwrap();
    let mut other = Service::prepare(BINARY, |_| {}).unwrap();
    let kubeconfig = one.folder().join("state/kubeconfig");
    other
        .reconfigure(|config| {
            config.as_object_mut().unwrap().remove("embedded");
            config["kubernetes"] = json!({ "kubeconfig": kubeconfig, "instance": "other" });
        })
        .unwrap();
    other.run().await.unwrap();
    let (ada, same) = (one.user("ada").unwrap(), other.user("ada").unwrap());
    ada.spawn_to_end("ada").await.unwrap();
    let refused = same.spawn("ada").await.unwrap();
    assert_eq!(refused.problem().unwrap(), "409 record_taken", "{refused:?}");
    assert_eq!(same.stop("ada").await.unwrap().status, 404);
    let grace = other.user("grace").unwrap();
    let events = grace.spawn_to_end("grace").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert_eq!(
        one.hub().unwrap().get("/spawner/v1/labs?status=all").await.unwrap().json().unwrap(),
        json!(["ada"])
    );
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
}

/// If labs share a namespace with other software, the service never adopts an object with the name of a lab's object.
#[tokio::test]
async fn foreign_objects_in_a_shared_namespace_are_not_changed() {
    let shared = |config: &mut Value| {
        config["kubernetes"] = json!({ "namespaces": "retain" });
        config["names"] = json!({ "namespace": "labs" });
    };
    for kind in ["ConfigMap", "Secret"] {
        let service = Service::start_with(BINARY, shared).await.unwrap();
        let client = service.cluster().await.unwrap();
        make(&Api::<Namespace>::all(client.clone()), json!({ "metadata": { "name": "labs" } })).await;
        let (maps, secrets) =
            (Api::<ConfigMap>::namespaced(client.clone(), "labs"), Api::<Secret>::namespaced(client, "labs"));
        let version = async || match kind {
            "ConfigMap" => maps.get("nb-ada-env").await.unwrap().metadata.resource_version,
            _ => secrets.get("nb-ada").await.unwrap().metadata.resource_version,
        };
        match kind {
            "ConfigMap" => {
                make(&maps, json!({ "metadata": { "name": "nb-ada-env" }, "data": { "a": "b" } })).await;
            }
            _ => {
                make(&secrets, json!({ "metadata": { "name": "nb-ada" }, "stringData": { "a": "b" } })).await;
            }
        }
        let before = version().await;
        let ada = service.user("ada").unwrap();
        let events = ada.spawn_to_end("ada").await.unwrap();
        assert_eq!(events.last().unwrap().kind, "failed", "{kind}: {events:#?}");
        let lab = ada.lab("ada").await.unwrap().json().unwrap();
        assert_eq!(lab["reason"], "NameTaken", "{kind}: {lab:#}");
        assert_eq!(ada.stop("ada").await.unwrap().status, 202);
        until(&ada, "ada", Value::is_null).await;
        assert_eq!(version().await, before, "{kind}");
    }
}

/// The name templates change while objects of a failed lab, whose deletion is blocked, still exist.
#[tokio::test]
async fn a_failed_lab_is_deleted_in_both_namespaces_when_the_names_change() {
    let keeping = |config: &mut Value| config["embedded"]["keep_labs"] = true.into();
    let mut service = Service::start_with(BINARY, keeping).await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    let client = service.cluster().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "nublado-ada");
    make(&maps, json!({ "metadata": { "name": "held", "finalizers": ["example.org/held"] } })).await;
    let pods: Api<Pod> = Api::namespaced(client, "nublado-ada");
    pods.delete("nb-ada", &DeleteParams::default()).await.unwrap();
    until(&ada, "ada", |lab| lab["status"] != "running").await;

    service
        .reconfigure(|config| {
            keeping(config);
            config["names"] = json!({ "namespace": "elsewhere-{user_server}" });
        })
        .unwrap();
    service.crash_and_restart().await.unwrap();
    let client = service.cluster().await.unwrap();
    // A spawn is refused while the failed lab's objects are being deleted.
    until_some(async || (ada.spawn("ada").await.unwrap().status == 303).then_some(())).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    assert!(namespaces.get_opt("nublado-ada").await.unwrap().is_some(), "it is held");
    let maps: Api<ConfigMap> = Api::namespaced(client, "nublado-ada");
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("held", &PatchParams::default(), &free).await.unwrap();
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert!(namespaces.get_opt("elsewhere-ada").await.unwrap().is_some());
    gone(&namespaces, "nublado-ada").await;

    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    let kept = namespaces.get("elsewhere-ada").await.unwrap();
    assert!(kept.metadata.deletion_timestamp.is_none());
    until(&ada, "ada", Value::is_null).await;
}

/// In a retained namespace, objects without a record are not deleted, but reported. The service may not read Secrets,
/// so it finds such labs by their environment `ConfigMap`.
#[tokio::test]
async fn objects_without_a_record_in_a_retained_namespace_are_reported() {
    let shared = |config: &mut Value| {
        config["kubernetes"] = json!({ "namespaces": "retain" });
        config["names"] = json!({ "namespace": "labs" });
    };
    let service = Service::start_with(BINARY, shared).await.unwrap();
    let (ada, admin) = (service.user("ada").unwrap(), service.admin().unwrap());
    ada.spawn_to_end("ada").await.unwrap();
    let client = service.cluster().await.unwrap();
    let (maps, secrets): (Api<ConfigMap>, Api<Secret>) =
        (Api::namespaced(client.clone(), "labs"), Api::namespaced(client, "labs"));
    let mut labels = maps.get("nb-ada-env").await.unwrap().metadata.labels.unwrap();
    labels.insert("wasmspawner.io/spawn".to_owned(), "11111111-1111-4111-8111-111111111111".to_owned());
    make(&maps, json!({ "metadata": { "name": "nb-grace-env", "labels": labels } })).await;
    make(&secrets, json!({ "metadata": { "name": "nb-grace", "labels": labels } })).await;

    let orphans = admin.get(&format!("{PREFIX}/orphans")).await.unwrap().json().unwrap();
    let spawn = "11111111-1111-4111-8111-111111111111";
    assert_eq!(
        orphans,
        json!([{ "cluster": null, "kind": "ConfigMap", "namespace": "labs", "name": "nb-grace-env", "spawn": spawn,
            "target": null }])
    );
    assert!(secrets.get_opt("nb-grace").await.unwrap().is_some(), "it is only reported");
    let deletion = admin.request(http::Method::DELETE, &format!("{PREFIX}/orphans"));
    assert_eq!(admin.send(deletion).await.unwrap().status, 200);
    gone(&maps, "nb-grace-env").await;
    gone(&secrets, "nb-grace").await;
    assert!(secrets.get_opt("nb-ada").await.unwrap().is_some(), "what has a record is not touched");
}
