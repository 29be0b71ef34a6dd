//! Labs in another cluster. The other cluster is the one-machine cluster of a second service.

use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::Client;
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;

use super::environments::{OWN, add_class, claims, namespaces, targets, until_no_namespace};
use super::running::{until, until_some};
use crate::BINARY;

/// Users choose by the size where their labs run.
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

/// Puts what leads to the other cluster into the Secret `far`.
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

    // The other cluster is gone. Its lab is not given up, and the labs here do not notice.
    far.kill();
    grace.stop_to_end("grace").await.unwrap();
    spawn(&grace, "grace", "near").await;
    until(&grace, "grace", |lab| lab["status"] == "running").await;
    let eve = near.user("eve").unwrap();
    spawn(&eve, "eve", "far").await;
    until(&eve, "eve", |lab| lab["stage"] == "Binding").await;
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");

    // The service starts again while it is away.
    near.crash_and_restart().await.unwrap();
    let (ada, grace) = (near.user("ada").unwrap(), near.user("grace").unwrap());
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
    assert_eq!(grace.lab("grace").await.unwrap().json().unwrap()["status"], "running");

    // It comes back with other credentials, which are used without a restart.
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

/// What cannot be removed over there is nothing that the next lab needs.
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

/// A target of its owner: the namespace is theirs, and stays.
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
