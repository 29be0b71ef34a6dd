//! Labs in another cluster. The other cluster is the one-machine cluster of a second service.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::{until_running, until_some};

use super::environments::{OWN, add_class, claims, namespaces, targets, until_no_namespace};
use super::running::until;
use super::{dask_pools, kernels};
use crate::BINARY;

/// A site whose users choose the cluster of their labs by the size.
fn both(config: &mut Value) {
    config["embedded"]["keep_labs"] = true.into();
    config["kubernetes"] = json!({ "instance": "near" });
    config["environments"] = json!({});
    config["lab"] = json!({ "image": "registry.example.org/lab:1" });
    let size = |name: &str, class: &str| json!({"name": name, "cpu": 1, "memory": "1Gi", "environment_class": class});
    let policy = json!({
        "name": "default",
        "path": guests::component("policy-default"),
        "config": { "sizes": [size("near", "near"), size("far", "far")] },
    });
    config["policies"] = json!([policy]);
}

/// Stores the credentials of the other cluster in the Secret `far`.
async fn lead_to(far: &Service, near: &kube::Client) {
    let kubeconfig = std::fs::read_to_string(far.folder().join("state/kubeconfig")).unwrap();
    let secrets: Api<Secret> = Api::namespaced(near.clone(), OWN);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "far"},
        "stringData": {"kubeconfig": kubeconfig}});
    let params = PatchParams::apply("test").force();
    secrets.patch("far", &params, &Patch::Apply(&secret)).await.unwrap();
}

async fn spawn(user: &Client, name: &str, size: &str) {
    let answer = user.spawn_with(name, &json!({ "options": { "size": size } })).await.unwrap();
    assert_eq!(answer.status, 303, "{answer:?}");
}

async fn pods(client: &kube::Client) -> Vec<String> {
    let all = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await.unwrap().items;
    all.into_iter().filter_map(|pod| pod.metadata.name).collect()
}

async fn two_clusters() -> (Service, Service, kube::Client) {
    let keep = |config: &mut Value| config["embedded"]["keep_labs"] = true.into();
    let (far, near) = tokio::join!(Service::start_with(BINARY, keep), Service::start_with(BINARY, both));
    let (far, near) = (far.unwrap(), near.unwrap());
    let client = near.cluster().await.unwrap();
    add_class(&client, "near", json!({"reclaimPolicy": "Delete"})).await;
    let parameters = json!({"credentialsSecret": "far", "credentials": "false"});
    add_class(&client, "far", json!({"reclaimPolicy": "Delete", "parameters": parameters})).await;
    lead_to(&far, &client).await;
    (far, near, client)
}

#[tokio::test]
async fn a_lab_runs_in_another_cluster_and_one_that_is_away_delays_nobody_else() {
    let (mut far, mut near, client) = two_clusters().await;
    let (ada, grace) = (near.user("ada").unwrap(), near.user("grace").unwrap());
    spawn(&ada, "ada", "far").await;
    spawn(&grace, "grace", "near").await;
    until(&ada, "ada", |lab| lab["status"] == "running").await;
    until(&grace, "grace", |lab| lab["status"] == "running").await;
    let there = far.cluster().await.unwrap();
    assert_eq!(
        (pods(&there).await, pods(&client).await),
        (vec!["nb-ada".to_owned()], vec!["nb-grace".to_owned()])
    );
    assert_eq!(namespaces(&there).await, ["nublado-ada"]);

    // The other cluster is away. Its lab is not given up, and the labs here are not affected.
    far.kill();
    grace.stop_to_end("grace").await.unwrap();
    spawn(&grace, "grace", "near").await;
    until(&grace, "grace", |lab| lab["status"] == "running").await;
    let eve = near.user("eve").unwrap();
    spawn(&eve, "eve", "far").await;
    until(&eve, "eve", |lab| lab["stage"] == "Binding").await;
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");

    // The service starts again while the other cluster is away.
    near.crash_and_restart().await.unwrap();
    let (ada, grace) = (near.user("ada").unwrap(), near.user("grace").unwrap());
    until_running(&ada, "ada").await;
    until_running(&grace, "grace").await;

    // The other cluster comes back with other credentials, which are used without a restart.
    far.run().await.unwrap();
    let client = near.cluster().await.unwrap();
    lead_to(&far, &client).await;
    let there = far.cluster().await.unwrap();
    assert_eq!(pods(&there).await, ["nb-ada"], "it ran on");
    let events = ada.stop_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    until_no_namespace(&there).await;
    let eve = near.user("eve").unwrap();
    until(&eve, "eve", |lab| lab["status"] == "failed").await;
    spawn(&eve, "eve", "far").await;
    until(&eve, "eve", |lab| lab["status"] == "running").await;
    assert_eq!(pods(&there).await, ["nb-eve"]);
}

#[tokio::test]
async fn a_lab_in_another_cluster_that_dies_there_is_noticed() {
    let (far, near, client) = two_clusters().await;
    let ada = near.user("ada").unwrap();
    spawn(&ada, "ada", "far").await;
    until(&ada, "ada", |lab| lab["status"] == "running").await;
    let there = far.cluster().await.unwrap();
    Api::<Pod>::namespaced(there.clone(), "nublado-ada")
        .delete("nb-ada", &DeleteParams::default())
        .await
        .unwrap();
    until_some(async || (ada.lab("ada").await.unwrap().status == 404).then_some(())).await;
    until_no_namespace(&there).await;
    until_some(async || {
        let left = claims(&client).list(&ListParams::default()).await.unwrap().items;
        left.is_empty().then_some(())
    })
    .await;
}

/// The next lab does not need objects that cannot be removed in the other cluster.
#[tokio::test]
async fn a_claim_that_does_not_go_does_not_hinder_the_next_lab() {
    let near = Service::start_with(BINARY, both).await.unwrap();
    let client = near.cluster().await.unwrap();
    add_class(&client, "near", json!({"reclaimPolicy": "Delete"})).await;
    let parameters = json!({"credentialsSecret": "missing", "credentials": "false"});
    add_class(&client, "far", json!({"reclaimPolicy": "Delete", "parameters": parameters})).await;
    let ada = near.user("ada").unwrap();
    spawn(&ada, "ada", "far").await;
    until(&ada, "ada", |lab| lab["stage"] == "Binding").await;
    let waiting = until_some(async || {
        let targets = targets(&client).list(&ListParams::default()).await.unwrap().items;
        let message = targets.first()?.data["status"]["conditions"][0]["message"].as_str()?.to_owned();
        Some(message)
    })
    .await;
    assert!(waiting.starts_with("The cluster that the Secret missing leads to does not answer"), "{waiting}");
    ada.stop_to_end("ada").await.unwrap();
    spawn(&ada, "ada", "near").await;
    until(&ada, "ada", |lab| lab["status"] == "running").await;
    let left = claims(&client).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(left.len(), 2, "the first one waits for its cluster");
}

/// An owner's target: the namespace belongs to the owner, and stays.
#[tokio::test]
async fn a_target_with_credentials_of_its_owner_is_used_and_its_namespace_stays() {
    let (far, near, client) = two_clusters().await;
    let there = far.cluster().await.unwrap();
    let theirs: Namespace = serde_json::from_value(json!({"metadata": {"name": "theirs"}})).unwrap();
    Api::<Namespace>::all(there.clone()).create(&PostParams::default(), &theirs).await.unwrap();
    let target = json!({"apiVersion": "wasmspawner.io/v1alpha1", "kind": "DeploymentTarget",
        "metadata": {"name": "theirs"}, "spec": {"deploymentTargetClassName": "far",
            "kubernetesCredentials": {"defaultNamespace": "theirs", "clusterCredentialsSecret": "far"},
            "reclaimPolicy": "Retain"}});
    let target = serde_json::from_value(target).unwrap();
    targets(&client).create(&PostParams::default(), &target).await.unwrap();
    until_some(async || {
        let target = targets(&client).get("theirs").await.unwrap();
        (target.data["status"]["phase"] == "Available").then_some(())
    })
    .await;
    let ada = near.user("ada").unwrap();
    spawn(&ada, "ada", "far").await;
    until(&ada, "ada", |lab| lab["status"] == "running").await;
    assert_eq!(
        Api::<Pod>::namespaced(there.clone(), "theirs")
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        1
    );
    ada.stop_to_end("ada").await.unwrap();
    assert_eq!(namespaces(&there).await, ["theirs"]);
    let secrets =
        Api::<Secret>::namespaced(there.clone(), "theirs").list(&ListParams::default()).await.unwrap();
    assert!(secrets.items.is_empty(), "nothing of the lab is left");
}

/// The children of a lab run in the lab's cluster, and end with the lab, even after a restart of the service.
#[tokio::test]
async fn kernels_and_dask_pools_are_in_the_cluster_of_their_lab() {
    let (far, mut near, _) = two_clusters().await;
    let ada = near.user("ada").unwrap();
    spawn(&ada, "ada", "far").await;
    until(&ada, "ada", |lab| lab["status"] == "running").await;
    kernels::run(&ada, "ada", "k1").await;
    dask_pools::run(&ada, "ada", "p1", json!(2)).await;
    let there = far.cluster().await.unwrap();
    let in_namespace = async || kernels::pods(&there, "nublado-ada").await.len();
    until_some(async || (in_namespace().await == 5).then_some(())).await;

    near.crash_and_restart().await.unwrap();
    let (ada, here) = (near.user("ada").unwrap(), near.cluster().await.unwrap());
    assert!(pods(&here).await.is_empty(), "nothing runs in the service's own cluster");
    kernels::until(&ada, "ada", "k1", |kernel| kernel["status"] == "running").await;
    let scaled = dask_pools::scale(&ada, "ada", "p1", json!(3)).await;
    assert_eq!(scaled.status, 202, "{scaled:?}");
    until_some(async || (in_namespace().await == 6).then_some(())).await;
    kernels::stop(&ada, "ada", "k1").await;
    until_some(async || (in_namespace().await == 5).then_some(())).await;

    ada.stop_to_end("ada").await.unwrap();
    dask_pools::until(&ada, "ada", "p1", Value::is_null).await;
    until_no_namespace(&there).await;
}

#[tokio::test]
async fn the_variables_of_a_lab_in_another_cluster_are_known_again_after_a_restart() {
    let (_far, mut near, _) = two_clusters().await;
    let ada = near.user("ada").unwrap();
    let wanted =
        json!({ "options": { "size": "far" }, "env": { "COLOUR": "blue", "API_TOKEN": "of-the-hub" } });
    assert_eq!(ada.spawn_with("ada", &wanted).await.unwrap().status, 303);
    let before = until(&ada, "ada", |lab| lab["status"] == "running").await;
    assert_eq!(before["env"]["COLOUR"], "blue", "{before:#}");
    near.crash_and_restart().await.unwrap();
    let ada = near.user("ada").unwrap();
    let after = until(&ada, "ada", |lab| lab["env"]["COLOUR"] == "blue").await;
    assert_eq!(after["env"], before["env"], "what is secret stays hidden");
}

/// The service notices the end of a namespace elsewhere when it happens, not at the next reconciliation.
#[tokio::test]
async fn a_namespace_elsewhere_that_was_stuck_is_noticed_when_it_goes() {
    let (far, near, client) = two_clusters().await;
    let ada = near.user("ada").unwrap();
    spawn(&ada, "ada", "far").await;
    until(&ada, "ada", |lab| lab["status"] == "running").await;
    let there = far.cluster().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(there.clone());
    let finalizers = async |finalizers: Value| {
        let patch = json!({"metadata": {"finalizers": finalizers}});
        namespaces.patch("nublado-ada", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    };
    finalizers(json!(["example.org/kept"])).await;
    ada.stop("ada").await.unwrap();
    let is_deleting = async || {
        let namespace = namespaces.get("nublado-ada").await.unwrap();
        namespace.metadata.deletion_timestamp.map(drop)
    };
    until_some(is_deleting).await;
    assert_eq!(claims(&client).list(&ListParams::default()).await.unwrap().items.len(), 1);
    finalizers(Value::Null).await;
    let gone = until_some(async || {
        let left = claims(&client).list(&ListParams::default()).await.unwrap().items;
        left.is_empty().then_some(())
    });
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
}

/// Objects in another cluster that look like this service's may belong to another site whose installation has the same
/// name.
#[tokio::test]
async fn orphans_in_another_cluster_are_reported_and_never_deleted() {
    let (far, near, client) = two_clusters().await;
    let ada = near.user("ada").unwrap();
    spawn(&ada, "ada", "far").await;
    until(&ada, "ada", |lab| lab["status"] == "running").await;
    let there = far.cluster().await.unwrap();
    let ours = json!({"app.kubernetes.io/managed-by": "wasmspawner", "wasmspawner.io/instance": "near"});
    let target_of = |uid: &str| {
        let mut labels = ours.clone();
        labels["wasmspawner.io/target"] = uid.into();
        labels
    };
    let add = async |to: &kube::Client, name: &str| {
        let labels = target_of("11111111-1111-4111-8111-111111111111");
        let namespace = json!({"metadata": {"name": name, "labels": labels}});
        let namespace: Namespace = serde_json::from_value(namespace).unwrap();
        Api::<Namespace>::all(to.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    };
    add(&there, "of-nobody-there").await;
    add(&client, "of-nobody-here").await;
    let admin = near.admin().unwrap();
    let named = |orphans: Value| -> Vec<(Option<String>, String)> {
        let orphans = orphans.as_array().unwrap().iter();
        let named = orphans.map(|orphan| {
            (orphan["cluster"].as_str().map(str::to_owned), orphan["name"].as_str().unwrap().to_owned())
        });
        named.collect()
    };
    let far_one = (Some("far".to_owned()), "of-nobody-there".to_owned());
    let near_one = (None, "of-nobody-here".to_owned());
    let path = format!("{PREFIX}/orphans");
    let found = async || named(admin.get(&path).await.unwrap().json().unwrap());
    let both = [near_one.clone(), far_one.clone()];
    until_some(async || (found().await == both).then_some(())).await;
    let deleted = admin.send(admin.request(Method::DELETE, &path)).await.unwrap();
    assert_eq!(named(deleted.json().unwrap()), [near_one]);
    until_some(async || (found().await == [far_one.clone()]).then_some(())).await;
    assert_eq!(namespaces(&there).await.len(), 2, "ada's and the one of nobody");
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
}
