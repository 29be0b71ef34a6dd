//! The service on a real Kubernetes, with exactly the permissions in `deploy/permissions.yaml`. The only node is the
//! one-machine cluster's kubelet.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "skipped tests are printed")]

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, PersistentVolumeClaim, Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wasmspawner_embedded::kubelet::{Kubelet, KubeletOptions, Runtime, SimulatedOptions};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::guests;
use wasmspawner_tests::kubernetes::{Cluster, SKIPPED, remove_definition};
use wasmspawner_tests::service::Service;

const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");
const NODE: &str = "wasmspawner-test";

#[tokio::test(flavor = "multi_thread")]
async fn labs_start_and_stop_on_a_real_kubernetes() {
    let Some(cluster) = Cluster::enter("wasmspawner").await.unwrap() else { return println!("{SKIPPED}") };
    if cluster.has_nodes().await.unwrap() {
        println!("skipped: the cluster has nodes, and a scheduler that does not know ours");
        return cluster.leave().await.unwrap();
    }
    let token = account(&cluster).await;
    // An earlier test may have been killed and left the definition behind.
    remove_definition(cluster.client.clone()).await.unwrap();
    a_cluster_without_the_definition(&cluster, &token);
    install_definition(&cluster).await;
    let kubelet = KubeletOptions::new(NODE, Runtime::Simulated(SimulatedOptions::default()));
    let kubelet = Kubelet::new(cluster.client.clone(), kubelet).unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(kubelet.run(stop.clone()));

    in_deleted_namespaces(&cluster, &token).await;
    in_retained_namespaces(&cluster, &token).await;

    stop.cancel();
    running.await.unwrap();
    remove_definition(cluster.client.clone()).await.unwrap();
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    nodes.delete(NODE, &DeleteParams::default()).await.unwrap();
    cluster.leave().await.unwrap();
}

async fn in_deleted_namespaces(cluster: &Cluster, token: &str) {
    let mut service = service(cluster, token, "delete");
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let namespace = format!("{}-delete-ada", cluster.namespace);
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &namespace);
    let pod = pods.list(&ListParams::default()).await.unwrap().items.pop().unwrap();
    assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some(NODE));
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Running"));

    let broken = "fault.pull-failure";
    let user = service.user(broken).unwrap();
    let events = user.spawn_to_end(broken).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");

    service.crash_and_restart().await.unwrap();
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert_eq!(ada.spawn("ada").await.unwrap().status, 303, "at once, while the namespace is going");
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert!(events.iter().any(|event| event.data == "Waiting until the previous lab is gone"), "{events:#?}");
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");

    let records = spawns(cluster);
    let record = records.get("lab-ada").await.unwrap();
    assert_eq!(record.data["spec"]["place"]["namespace"], namespace, "{record:?}");
    records.delete("lab-ada", &DeleteParams::default()).await.unwrap();
    gone(&records, "lab-ada").await;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    assert!(namespaces.get_opt(&namespace).await.unwrap().is_none(), "the record goes last");
    a_namespace_of_somebody_else(cluster, &service).await;
    assert!(!service.log().contains("forbidden"), "{}", service.log());
}

async fn a_namespace_of_somebody_else(cluster: &Cluster, service: &Service) {
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let name = format!("{}-delete-grace", cluster.namespace);
    let theirs = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    let before = namespaces.create(&PostParams::default(), &theirs).await.unwrap().metadata;
    let grace = service.user("grace").unwrap();
    let events = grace.spawn_to_end("grace").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    assert_eq!(grace.lab("grace").await.unwrap().json().unwrap()["reason"], "NamespaceTaken");
    assert_eq!(grace.stop("grace").await.unwrap().status, 202);
    gone(&spawns(cluster), "lab-grace").await;
    let after = namespaces.get(&name).await.unwrap().metadata;
    assert_eq!((&after.uid, &after.labels), (&before.uid, &before.labels), "it is not touched");
    assert!(after.deletion_timestamp.is_none());
    namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
}

fn spawns(cluster: &Cluster) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("wasmspawner.io", "v1alpha1", "Spawn"));
    Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &kind)
}

async fn in_retained_namespaces(cluster: &Cluster, token: &str) {
    let mut service = service(cluster, token, "retain");
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let namespace = format!("{}-retain-ada", cluster.namespace);
    let ours = ListParams::default().labels("app.kubernetes.io/managed-by=wasmspawner");
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &namespace);
    assert!(!maps.list(&ours).await.unwrap().items.is_empty());
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert!(maps.list(&ours).await.unwrap().items.is_empty(), "its objects are gone");
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client.clone(), &namespace);
    assert!(claims.get_opt("claim-ada").await.unwrap().is_some(), "but not its claim");
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "in a namespace that is there: {events:#?}");
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    ada.events("ada").await.unwrap().to_end().await.unwrap();
    let hub = service.hub().unwrap();
    let release = hub.request(http::Method::DELETE, &format!("{PREFIX}/labs/ada/volumes"));
    let released = hub.send(release).await.unwrap();
    assert_eq!(released.status, 200, "{released:?}");
    gone(&claims, "claim-ada").await;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    namespaces.delete(&namespace, &DeleteParams::default()).await.unwrap();
    gone(&namespaces, &namespace).await;
    assert!(!service.log().contains("forbidden"), "{}", service.log());
}

/// Waits until an object whose deletion was accepted is gone.
async fn gone<K: Clone + DeserializeOwned + Debug>(api: &Api<K>, name: &str) {
    let mut again = tokio::time::interval(Duration::from_millis(100));
    let waiting = async {
        while api.get_opt(name).await.unwrap().is_some() {
            again.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.unwrap();
}

/// A service that is not started yet. The names of its labs' namespaces begin with the test's; homes are volume claims.
fn service(cluster: &Cluster, token: &str, namespaces: &str) -> Service {
    let service = Service::prepare(BINARY, |_| {}).unwrap();
    let kubeconfig = service.folder().join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig(token).unwrap()).unwrap();
    let homes = json!({
        "volumes": [{ "name": "home", "claim": { "name": "{pvc_name}", "create": {
            "storage": "1Gi", "on_server_deletion": "delete",
        } } }],
        "mounts": [{ "volume": "home", "path": "/home/ada" }],
    });
    service
        .reconfigure(|config| {
            config.as_object_mut().unwrap().remove("embedded");
            config["kubernetes"] = json!({
                "kubeconfig": kubeconfig,
                "namespace": cluster.namespace,
                "instance": format!("{}-{namespaces}", cluster.namespace),
                "namespaces": namespaces,
            });
            let name = format!("{}-{namespaces}-{{user_server}}", cluster.namespace);
            config["names"] = json!({ "namespace": name });
            // The policy `default` defines the homes; the other policy controls the simulated pod.
            let default = guests::component("policy-default");
            let site = json!({ "name": "default", "path": default, "config": homes });
            config["policies"].as_array_mut().unwrap().insert(0, site);
        })
        .unwrap();
    service
}

/// A service that cannot store records does not start, and says what to do.
fn a_cluster_without_the_definition(cluster: &Cluster, token: &str) {
    let output = service(cluster, token, "delete").run_to_end().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && stderr.contains("wasmspawner crds | kubectl apply -f -"), "{stderr}");
}

/// Installs `deploy/crds.yaml`.
async fn install_definition(cluster: &Cluster) {
    const FILE: &str = include_str!("../../deploy/crds.yaml");
    let definition: CustomResourceDefinition = serde_saphyr::from_str(FILE).unwrap();
    let name = definition.metadata.name.clone().unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let mut again = tokio::time::interval(Duration::from_millis(100));
    let served = async {
        while spawns(cluster).list(&ListParams::default()).await.is_err() {
            again.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), served).await.unwrap();
    let definition = definitions.get(&name).await.unwrap();
    let conditions = definition.status.unwrap().conditions.unwrap_or_default();
    let non_structural = conditions.iter().find(|condition| condition.type_ == "NonStructuralSchema");
    assert!(non_structural.is_none(), "{non_structural:?}");
}

/// Creates the account of `deploy/permissions.yaml` in the test's namespace. Returns a token of it.
async fn account(cluster: &Cluster) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let account = serde_json::from_value(json!({ "metadata": { "name": "wasmspawner" } })).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    for object in permissions(&cluster.namespace) {
        let kind = object.types.clone().unwrap();
        let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(kind).unwrap());
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(cluster.client.clone(), namespace, &kind),
            None => Api::all_with(cluster.client.clone(), &kind),
        };
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let token = accounts.create_token_request("wasmspawner", &PostParams::default(), &request).await.unwrap();
    token.status.unwrap().token.unwrap()
}

/// The objects of `deploy/permissions.yaml` for another namespace, whose name cluster-wide objects get, too.
fn permissions(namespace: &str) -> Vec<DynamicObject> {
    const FILE: &str = include_str!("../../deploy/permissions.yaml");
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(FILE).unwrap();
    for object in &mut objects {
        if object["metadata"].get("namespace").is_some() {
            object["metadata"]["namespace"] = json!(namespace);
        } else {
            object["metadata"]["name"] = json!(namespace);
        }
        if object["roleRef"]["kind"] == "ClusterRole" {
            object["roleRef"]["name"] = json!(namespace);
        }
        if let Some(subject) = object.pointer_mut("/subjects/0/namespace") {
            *subject = json!(namespace);
        }
    }
    objects.into_iter().map(|object| serde_json::from_value(object).unwrap()).collect()
}
