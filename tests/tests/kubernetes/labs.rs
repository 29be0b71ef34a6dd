//! Actions of users and operators on labs, in each kind of namespace.

use std::fmt::Debug;

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, ResourceQuota, Secret};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_running;

use crate::BINARY;
use crate::site::{NODE, Site, until, until_within_a_minute};

/// A user whose image cannot be pulled.
const BROKEN: &str = "fault.pull-failure";
/// The uid of a record that does not exist.
const NO_RECORD: &str = "11111111-1111-4111-8111-111111111111";

pub(crate) async fn in_deleted_namespaces(site: &Site) {
    let template = format!("{}-delete-{{user_server}}", site.name());
    let usual = |config: &mut Value| config["kubernetes"]["delete_namespaces_after"] = Value::Null;
    let mut service = service_with(site, "delete", &template, usual);
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let namespace = format!("{}-delete-ada", site.name());
    let pods: Api<Pod> = Api::namespaced(site.cluster.client.clone(), &namespace);
    let pod = pods.list(&ListParams::default()).await.unwrap().items.pop().unwrap();
    assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some(NODE));
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Running"));
    let quotas: Api<ResourceQuota> = Api::namespaced(site.cluster.client.clone(), &namespace);
    assert!(quotas.get_opt("nb-ada").await.unwrap().is_some());

    let user = service.user(BROKEN).unwrap();
    let events = user.spawn_to_end(BROKEN).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");

    service.crash_and_restart().await.unwrap();
    until_running(&ada, "ada").await;
    // The spawn goes on if the crash came before its failure was in the record.
    until(async || user.lab(BROKEN).await.unwrap().json().unwrap()["status"] == "failed").await;
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let namespaces: Api<Namespace> = Api::all(site.cluster.client.clone());
    let kept = namespaces.get(&namespace).await.unwrap().metadata;
    let secrets: Api<Secret> = Api::namespaced(site.cluster.client.clone(), &namespace);
    assert!(secrets.list(&ListParams::default()).await.unwrap().items.is_empty());
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert!(!events.iter().any(|event| event.data.contains("previous lab")), "{events:#?}");
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert_eq!(namespaces.get(&namespace).await.unwrap().metadata.uid, kept.uid);

    let records = site.spawns();
    let record = records.get("lab-ada").await.unwrap();
    assert_eq!(record.data["spec"]["place"]["namespace"], namespace, "{record:?}");
    records.delete("lab-ada", &DeleteParams::default()).await.unwrap();
    gone(&records, "lab-ada").await;
    assert!(namespaces.get_opt(&namespace).await.unwrap().is_none(), "the record goes last");
    a_namespace_of_somebody_else(site, &service).await;

    let orphan = format!("{}-delete-orphan", site.name());
    make(&namespaces, json!({ "metadata": { "name": orphan, "labels": labels_of_nobody(site) } })).await;
    delete_orphans(&service, &[&orphan]).await;
    gone(&namespaces, &orphan).await;
    assert_permitted(&service);
}

async fn a_namespace_of_somebody_else(site: &Site, service: &Service) {
    let namespaces: Api<Namespace> = Api::all(site.cluster.client.clone());
    let name = site.namespace("delete-grace").await;
    let before = namespaces.get(&name).await.unwrap().metadata;
    let grace = service.user("grace").unwrap();
    let events = grace.spawn_to_end("grace").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    assert_eq!(grace.lab("grace").await.unwrap().json().unwrap()["reason"], "NamespaceTaken");
    assert_eq!(grace.stop("grace").await.unwrap().status, 202);
    gone(&site.spawns(), "lab-grace").await;
    let after = namespaces.get(&name).await.unwrap().metadata;
    assert_eq!((&after.uid, &after.labels), (&before.uid, &before.labels), "it is not touched");
    assert!(after.deletion_timestamp.is_none());
    namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
}

/// Labs in `namespace`, with the value `mode` of `kubernetes.namespaces`.
pub(crate) async fn in_a_namespace_that_stays(site: &Site, mode: &str, namespace: &str) {
    let mut service = service(site, mode, namespace);
    service.run().await.unwrap();
    let client = site.cluster.client.clone();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let ours = ListParams::default().labels("app.kubernetes.io/managed-by=wasmspawner");
    let broken = service.user(BROKEN).unwrap();
    let events = broken.spawn_to_end(BROKEN).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    until(async || maps.list(&ours).await.unwrap().items.is_empty()).await;

    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert!(!maps.list(&ours).await.unwrap().items.is_empty());
    let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), namespace);
    let limited = quotas.get_opt("nb-ada").await.unwrap().is_some();
    assert_eq!(limited, mode == "retain", "nobody's limits apply to the labs of all users");
    if mode == "single" {
        let grace = service.user("grace").unwrap();
        let events = grace.spawn_to_end("grace").await.unwrap();
        assert_eq!(events.last().unwrap().kind, "complete", "in the same namespace: {events:#?}");
        stop(&service, "grace").await;
    }

    service.crash_and_restart().await.unwrap();
    until_running(&ada, "ada").await;
    stop(&service, "ada").await;
    assert!(maps.list(&ours).await.unwrap().items.is_empty(), "its objects are gone");
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    assert!(claims.get_opt("claim-ada").await.unwrap().is_some(), "but not its claim");
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "in a namespace that is there: {events:#?}");
    stop(&service, "ada").await;
    let hub = service.hub().unwrap();
    let release = hub.request(http::Method::DELETE, &format!("{PREFIX}/labs/ada/volumes"));
    let released = hub.send(release).await.unwrap();
    assert_eq!(released.status, 200, "{released:?}");
    gone(&claims, "claim-ada").await;

    what_nobody_remembers(site, &service, namespace).await;
    let namespaces: Api<Namespace> = Api::all(client);
    assert!(namespaces.get(namespace).await.unwrap().metadata.deletion_timestamp.is_none());
    assert_permitted(&service);
}

pub(crate) async fn stop(service: &Service, user: &str) {
    let client = service.user(user).unwrap();
    assert_eq!(client.stop(user).await.unwrap().status, 202);
    let events = client.events(user).await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
}

/// Objects of a lab without a record are reported, and deleted on an administrator's request.
async fn what_nobody_remembers(site: &Site, service: &Service, namespace: &str) {
    let client = site.cluster.client.clone();
    let (maps, secrets): (Api<ConfigMap>, Api<Secret>) =
        (Api::namespaced(client.clone(), namespace), Api::namespaced(client.clone(), namespace));
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let labels = labels_of_nobody(site);
    make(&maps, json!({ "metadata": { "name": "nb-nobody-env", "labels": labels } })).await;
    make(&secrets, json!({ "metadata": { "name": "nb-nobody", "labels": labels } })).await;
    let container = json!({
        "name": "notebook", "image": "x", "resources": { "limits": { "cpu": "1", "memory": "1Gi" } },
    });
    let pod = json!({ "metadata": { "name": "nb-nobody", "labels": labels }, "spec": { "containers": [container] } });
    make(&pods, pod).await;
    delete_orphans(service, &["nb-nobody-env", "nb-nobody"]).await;
    gone(&maps, "nb-nobody-env").await;
    gone(&secrets, "nb-nobody").await;
    gone(&pods, "nb-nobody").await;
}

/// The labels of an object that belongs to no record.
pub(crate) fn labels_of_nobody(site: &Site) -> Value {
    json!({
        "app.kubernetes.io/managed-by": "wasmspawner", "wasmspawner.io/instance": site.name(),
        "app.kubernetes.io/component": "environment", "wasmspawner.io/spawn": NO_RECORD,
    })
}

/// Waits until the service reports these objects, and lets it delete them.
async fn delete_orphans(service: &Service, expected: &[&str]) {
    let admin = service.admin().unwrap();
    let orphans = format!("{PREFIX}/orphans");
    until(async || {
        let found = admin.get(&orphans).await.unwrap().json().unwrap();
        let names: Vec<&str> =
            found.as_array().unwrap().iter().filter_map(|orphan| orphan["name"].as_str()).collect();
        expected.iter().all(|name| names.contains(name))
    })
    .await;
    let deletion = admin.request(http::Method::DELETE, &orphans);
    let deleted = admin.send(deletion).await.unwrap();
    assert_eq!(deleted.status, 200, "{deleted:?}");
}

/// Checks that no request of the service was refused for lack of a permission, or by an admission policy.
pub(crate) fn assert_permitted(service: &Service) {
    let log = service.log();
    let refusals: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("is forbidden: User") || line.contains("denied request"))
        .collect();
    assert!(refusals.is_empty(), "{refusals:#?}");
}

/// Waits until an object whose deletion was accepted is gone.
pub(crate) async fn gone<K: Clone + DeserializeOwned + Debug>(api: &Api<K>, name: &str) {
    let mut left = None;
    let is_gone = until_within_a_minute(async || {
        left = api.get_opt(name).await.unwrap();
        left.is_none()
    });
    assert!(is_gone.await, "{name} is there after a minute: {left:?}");
}

async fn make<K>(api: &Api<K>, object: Value)
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// A service that is not started yet. `template` names the namespaces of its labs; homes are volume claims.
pub(crate) fn service(site: &Site, namespaces: &str, template: &str) -> Service {
    service_with(site, namespaces, template, |_| {})
}

/// The same with more changes to the configuration.
pub(crate) fn service_with(
    site: &Site,
    namespaces: &str,
    template: &str,
    change: impl FnOnce(&mut Value),
) -> Service {
    let service = Service::prepare(BINARY, |_| {}).unwrap();
    let kubeconfig = service.folder().join("kubeconfig");
    std::fs::write(&kubeconfig, site.cluster.kubeconfig(&site.token).unwrap()).unwrap();
    let homes = json!({
        "volumes": [{ "name": "home", "claim": { "name": "{pvc_name}", "create": {
            "storage": "1Gi", "on_server_deletion": "delete",
        } } }],
        "mounts": [{ "volume": "home", "path": "/home/ada" }],
        // Without sizes, a lab gets the whole quota: the cluster refuses a pod without limits.
        "quota": { "default": { "cpu": 8, "memory": "16Gi" } },
    });
    service
        .reconfigure(|config| {
            config.as_object_mut().unwrap().remove("embedded");
            config["kubernetes"] = json!({
                "kubeconfig": kubeconfig,
                "namespace": site.name(),
                "instance": site.name(),
                "namespaces": namespaces,
                "delete_namespaces_after": (namespaces == "delete").then_some("500ms"),
            });
            config["names"] = json!({ "namespace": template });
            // The policy `default` defines the homes; the other policy controls the simulated pod.
            let default = guests::component("policy-default");
            let policy = json!({ "name": "default", "path": default, "config": homes });
            config["policies"].as_array_mut().unwrap().insert(0, policy);
            change(config);
        })
        .unwrap();
    service
}

/// Checks that a service that cannot store records does not start, and that its message contains the remedy.
pub(crate) fn a_cluster_without_the_definition(site: &Site) {
    let output = service(site, "delete", "labs-{user_server}").run_to_end().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && stderr.contains("wasmspawner crds | kubectl apply -f -"), "{stderr}");
}

/// The URL by which the Hub reaches a lab, as reported by the service.
pub(crate) async fn lab_url(user: &Client, lab: &str) -> String {
    let lab = user.lab(lab).await.unwrap().json().unwrap();
    lab["url"].as_str().unwrap_or_else(|| panic!("{lab}")).to_owned()
}

/// Starts a lab, and checks that it becomes ready.
pub(crate) async fn start(user: &Client, lab: &str) {
    let events = user.spawn_to_end(lab).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
}

/// Replaces `lab.service` in a service that runs.
pub(crate) async fn set_lab_service(service: &Service, admin: &Client, value: Value) {
    let mut config: Value = serde_json::from_slice(&std::fs::read(service.config_file()).unwrap()).unwrap();
    config["lab"]["service"] = value;
    std::fs::write(service.config_file(), config.to_string()).unwrap();
    let reload = admin.request(Method::POST, &format!("{PREFIX}/config/reload"));
    let answer = admin.send(reload).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}
