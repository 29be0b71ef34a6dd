//! Environments: labs in namespaces that claims, targets and classes describe.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::{until_running, until_some};

use super::running::until;
use crate::BINARY;

pub(super) const OWN: &str = "wasmspawner";

/// The custom resources of a kind.
fn kind(client: kube::Client, kind: &str, plural: &str) -> Api<DynamicObject> {
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("wasmspawner.io", "v1alpha1", kind), plural);
    if kind == "DeploymentTargetClass" {
        Api::all_with(client, &resource)
    } else {
        Api::namespaced_with(client, OWN, &resource)
    }
}

fn classes(client: &kube::Client) -> Api<DynamicObject> {
    kind(client.clone(), "DeploymentTargetClass", "deploymenttargetclasses")
}

pub(super) fn claims(client: &kube::Client) -> Api<DynamicObject> {
    kind(client.clone(), "DeploymentTargetClaim", "deploymenttargetclaims")
}

pub(super) fn targets(client: &kube::Client) -> Api<DynamicObject> {
    kind(client.clone(), "DeploymentTarget", "deploymenttargets")
}

async fn create(api: &Api<DynamicObject>, object: Value) -> DynamicObject {
    let mut object = object;
    object["apiVersion"] = "wasmspawner.io/v1alpha1".into();
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

pub(super) async fn add_class(client: &kube::Client, name: &str, spec: Value) {
    let mut spec = spec;
    spec["provisioner"] = "wasmspawner.io/namespace".into();
    create(
        &classes(client),
        json!({"kind": "DeploymentTargetClass", "metadata": {"name": name}, "spec": spec}),
    )
    .await;
}

async fn phase(api: &Api<DynamicObject>, name: &str) -> Option<String> {
    api.get_opt(name).await.unwrap()?.data["status"]["phase"].as_str().map(str::to_owned)
}

/// A service whose labs have environments of the class `standard`, unless a policy chooses another.
pub(super) async fn with_environments(change: impl FnOnce(&mut Value)) -> (Service, kube::Client) {
    let environments = |config: &mut Value| {
        config["embedded"]["keep_labs"] = true.into();
        config["environments"] = json!({ "default_class": "standard" });
        change(config);
    };
    let service = Service::start_with(BINARY, environments).await.unwrap();
    let client = service.cluster().await.unwrap();
    (service, client)
}

pub(super) async fn namespaces(client: &kube::Client) -> Vec<String> {
    let all = Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    let names = all.items.into_iter().filter_map(|namespace| namespace.metadata.name);
    names.filter(|name| !name.starts_with("kube-") && name != "default" && name != OWN).collect()
}

pub(super) async fn until_no_namespace(client: &kube::Client) {
    until_some(async || namespaces(client).await.is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_lab_waits_for_its_environment_and_takes_it_along_when_it_stops() {
    let (mut service, client) = with_environments(|_| {}).await;
    add_class(&client, "standard", json!({"reclaimPolicy": "Delete", "parameters": {"quota.pods": "5"}}))
        .await;
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let stages: Vec<Value> = events
        .iter()
        .filter(|event| event.kind == "stage")
        .map(|event| event.report()["stage"].clone())
        .collect();
    assert_eq!(stages[0], "Binding", "{stages:?}");
    let told = events.iter().any(|event| event.data == "Waiting for an environment of the class standard.");
    assert!(told, "{events:#?}");

    let claim = claims(&client).get("lab-ada").await;
    let all = claims(&client).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(all.len(), 1, "{claim:?}");
    assert_eq!(all[0].data["status"]["phase"], "Bound");
    assert_eq!(all[0].metadata.annotations.as_ref().unwrap()["wasmspawner.io/owner"], "ada");
    let namespace = Api::<Namespace>::all(client.clone()).get("nublado-ada").await.unwrap();
    assert!(namespace.metadata.labels.unwrap().contains_key("wasmspawner.io/target"));
    let target = targets(&client).list(&ListParams::default()).await.unwrap().items.remove(0);
    assert_eq!(target.data["spec"]["kubernetesCredentials"]["defaultNamespace"], "nublado-ada");
    assert_eq!(target.data["status"]["phase"], "Bound");

    service.crash_and_restart().await.unwrap();
    let (ada, client) = (service.user("ada").unwrap(), service.cluster().await.unwrap());
    until_running(&ada, "ada").await;
    ada.stop_to_end("ada").await.unwrap();
    until_no_namespace(&client).await;
    until_some(async || {
        let claims = claims(&client).list(&ListParams::default()).await.unwrap().items;
        let targets = targets(&client).list(&ListParams::default()).await.unwrap().items;
        (claims.is_empty() && targets.is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_retained_environment_keeps_what_its_user_had() {
    let (service, client) = with_environments(|_| {}).await;
    add_class(&client, "standard", json!({"reclaimPolicy": "Retain"})).await;
    let (ada, grace) = (service.user("ada").unwrap(), service.user("grace").unwrap());
    ada.spawn_to_end("ada").await.unwrap();
    let uid = async || Api::<Namespace>::all(client.clone()).get("nublado-ada").await.unwrap().metadata.uid;
    let first = uid().await;
    ada.stop_to_end("ada").await.unwrap();
    let released = until_some(async || {
        let all = targets(&client).list(&ListParams::default()).await.unwrap().items;
        all.into_iter().find(|target| target.data["status"]["phase"] == "Released")
    })
    .await;
    let pods =
        Api::<Pod>::namespaced(client.clone(), "nublado-ada").list(&ListParams::default()).await.unwrap();
    let secrets = Api::<Secret>::namespaced(client.clone(), "nublado-ada");
    let secrets = secrets.list(&ListParams::default().labels("wasmspawner.io/spawn")).await.unwrap();
    assert!(pods.items.is_empty() && secrets.items.is_empty(), "only the namespace stays");
    // Another user gets another environment.
    grace.spawn_to_end("grace").await.unwrap();
    assert!(namespaces(&client).await.contains(&"nublado-grace".to_owned()));
    ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(uid().await, first);
    let name = released.metadata.name.unwrap();
    assert_eq!(phase(&targets(&client), &name).await.as_deref(), Some("Bound"));
}

/// A site without a class of its own that retains the namespaces of some labs and deletes those of others.
#[tokio::test]
async fn delete_and_retain_need_no_class_and_take_no_namespace_that_was_kept_before() {
    let (mut service, client) = with_environments(|config| {
        config["environments"] = json!({});
        config["kubernetes"]["namespaces"] = "retain".into();
        config["lab"] = json!({ "image": "registry.example.org/lab:1" });
        let size =
            |class: &str| json!({"name": class, "cpu": 1, "memory": "1Gi", "environment_class": class});
        let plain = json!({"name": "plain", "cpu": 1, "memory": "1Gi"});
        config["policies"] = json!([{ "name": "default", "path": guests::component("policy-default"),
            "config": { "sizes": [plain, size("delete"), size("retain")] } }]);
    })
    .await;
    let spawn = async |service: &Service, name: &str, size: &str| {
        let user = service.user(name).unwrap();
        let answer = user.spawn_with(name, &json!({ "options": { "size": size } })).await.unwrap();
        assert_eq!(answer.status, 303, "{answer:?}");
        until(&user, name, |lab| lab["status"] == "running" || lab["status"] == "failed").await
    };
    for (name, size) in [("ada", "retain"), ("grace", "delete"), ("eve", "plain")] {
        assert_eq!(spawn(&service, name, size).await["status"], "running", "{name}");
        service.user(name).unwrap().stop_to_end(name).await.unwrap();
    }
    until_some(async || (namespaces(&client).await == ["nublado-ada", "nublado-eve"]).then_some(())).await;

    // A claim does not receive a namespace that was kept without one.
    let failed = spawn(&service, "eve", "retain").await;
    assert_eq!(
        (&failed["status"], &failed["reason"]),
        (&json!("failed"), &json!("NamespaceTaken")),
        "{failed:#}"
    );
    assert_eq!(spawn(&service, "eve", "plain").await["status"], "running");
    service.crash_and_restart().await.unwrap();
    assert_eq!(spawn(&service, "ada", "retain").await["status"], "running");
}

#[tokio::test]
async fn a_pool_gives_labs_namespaces_that_are_there_already() {
    let (service, client) = with_environments(|_| {}).await;
    add_class(&client, "standard", json!({"reclaimPolicy": "Delete", "poolSize": 2})).await;
    let available = async || {
        let all = targets(&client).list(&ListParams::default()).await.unwrap().items;
        let ready = all.iter().filter(|target| target.data["status"]["phase"] == "Available").count();
        (ready == 2).then_some(all.len())
    };
    until_some(available).await;
    let ready = namespaces(&client).await;
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let pods = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await.unwrap().items;
    let place = pods[0].metadata.namespace.clone().unwrap();
    assert!(ready.contains(&place), "{place} is none of {ready:?}");
    assert_eq!(until_some(available).await, 3, "the pool is full again");
}

#[tokio::test]
async fn an_environment_that_cannot_be_had_fails_the_lab_with_the_reason() {
    let (service, client) = with_environments(|_| {}).await;
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    let failed = events.last().unwrap();
    assert_eq!(
        (failed.kind.as_str(), failed.data.as_str()),
        ("failed", "There is no environment for your lab: There is no DeploymentTargetClass standard.")
    );
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["reason"], "ClassNotFound");
    // Another owner's namespace is left alone, and named.
    add_class(&client, "standard", json!({"reclaimPolicy": "Delete"})).await;
    let theirs: Namespace = serde_json::from_value(json!({"metadata": {"name": "nublado-ada"}})).unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &theirs).await.unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    let failed = &events.last().unwrap().data;
    assert!(failed.contains("Namespace nublado-ada exists already"), "{failed}");
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["reason"], "NamespaceTaken");
    until_some(async || {
        let left = claims(&client).list(&ListParams::default()).await.unwrap().items;
        left.is_empty().then_some(())
    })
    .await;
    assert!(namespaces.get("nublado-ada").await.unwrap().metadata.deletion_timestamp.is_none());
    namespaces.delete("nublado-ada", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_stop_while_the_environment_is_awaited_leaves_nothing() {
    let (service, client) = with_environments(|_| {}).await;
    // Nobody provisions this class.
    create(
        &classes(&client),
        json!({"kind": "DeploymentTargetClass", "metadata": {"name": "standard"},
            "spec": {"provisioner": "example.org/other"}}),
    )
    .await;
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
    let mut events = ada.events("ada").await.unwrap();
    events.until("Waiting for an environment").await.unwrap();
    let stage = until_some(async || {
        let lab = ada.lab("ada").await.unwrap().json().unwrap();
        (lab["stage"] == "Binding").then_some(lab)
    })
    .await;
    assert_eq!(stage["status"], "starting");
    ada.stop_to_end("ada").await.unwrap();
    until_some(async || {
        let left = claims(&client).list(&ListParams::default()).await.unwrap().items;
        left.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_named_environment_is_shared_and_stays() {
    let (service, client) = with_environments(|config| {
        config["environments"]["default_class"] = "environment/site".into();
    })
    .await;
    let labs: Namespace = serde_json::from_value(json!({"metadata": {"name": "site-labs"}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &labs).await.unwrap();
    let (ada, grace) = (service.user("ada").unwrap(), service.user("grace").unwrap());
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert!(events.last().unwrap().data.contains("There is no environment site"), "{events:#?}");
    create(
        &targets(&client),
        json!({"kind": "DeploymentTarget", "metadata": {"name": "site"}, "spec": {
            "kubernetesCredentials": {"defaultNamespace": "site-labs"}, "claimRef": {"name": "site"}}}),
    )
    .await;
    create(
        &claims(&client),
        json!({"kind": "DeploymentTargetClaim", "metadata": {"name": "site"}, "spec": {}}),
    )
    .await;
    create(
        &kind(client.clone(), "Environment", "environments"),
        json!({"kind": "Environment", "metadata": {"name": "site"}, "spec": {"displayName": "The site's own",
            "configuration": {"target": {"deploymentTargetClaim": {"claimName": "site"}}}}}),
    )
    .await;
    for (user, name) in [(&ada, "ada"), (&grace, "grace")] {
        let events = user.spawn_to_end(name).await.unwrap();
        assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    }
    let pods = Api::<Pod>::namespaced(client.clone(), "site-labs");
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 2);
    ada.stop_to_end("ada").await.unwrap();
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 1);
    assert_eq!(phase(&claims(&client), "site").await.as_deref(), Some("Bound"));
    let environment = kind(client.clone(), "Environment", "environments").get("site").await.unwrap();
    assert_eq!(environment.data["status"]["phase"], "bound");
}

/// The environment leads to a namespace that does not exist. Nobody waits for it, and it works as soon as that does.
#[tokio::test]
async fn a_lab_fails_at_once_where_no_lab_can_run_and_starts_when_the_target_is_mended() {
    let (service, client) = with_environments(|config| {
        config["environments"]["default_class"] = "environment/site".into();
    })
    .await;
    let target = |namespace: &str| {
        json!({"kind": "DeploymentTarget", "metadata": {"name": "site"}, "spec": {
            "kubernetesCredentials": {"defaultNamespace": namespace}}})
    };
    let claim = json!({"kind": "DeploymentTargetClaim", "metadata": {"name": "site"}, "spec": {"targetName": "site"}});
    let environment = json!({"kind": "Environment", "metadata": {"name": "site"}, "spec": {"displayName": "The site's own",
        "deploymentStrategy": "AppStudioAutomated",
        "configuration": {"target": {"deploymentTargetClaim": {"claimName": "site"}}}}});
    let environments = kind(client.clone(), "Environment", "environments");
    create(&targets(&client), target("nowhere")).await;
    create(&claims(&client), claim).await;
    create(&environments, environment).await;
    until_some(async || (phase(&targets(&client), "site").await? == "Failed").then_some(())).await;
    let said = until_some(async || {
        let conditions = environments.get("site").await.unwrap().data["status"]["conditions"].take();
        conditions.as_array().and_then(|conditions| conditions.first().cloned())
    })
    .await;
    let reason = "The namespace nowhere does not exist in the target's cluster.";
    assert_eq!((&said["reason"], &said["message"]), (&json!("NamespaceNotFound"), &json!(reason)));
    let root = service.admin().unwrap().get(&format!("{PREFIX}/environments")).await.unwrap().json().unwrap();
    for of in ["environments", "claims", "targets"] {
        assert_eq!(root[of][0]["problem"], reason, "{root:#}");
    }

    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert!(events.last().unwrap().data.contains(reason), "{events:#?}");
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["reason"], "NamespaceNotFound");

    let labs: Namespace = serde_json::from_value(json!({"metadata": {"name": "site-labs"}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &labs).await.unwrap();
    let patch = json!({"spec": {"kubernetesCredentials": {"defaultNamespace": "site-labs"}}});
    targets(&client).patch("site", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    until_some(async || (phase(&claims(&client), "site").await? == "Bound").then_some(())).await;
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
}

/// The service's own namespace holds the records and the site's secrets.
#[tokio::test]
async fn a_target_in_the_service_s_own_namespace_is_refused() {
    let (service, client) = with_environments(|_| {}).await;
    add_class(&client, "standard", json!({"reclaimPolicy": "Retain"})).await;
    create(
        &targets(&client),
        json!({"kind": "DeploymentTarget", "metadata": {"name": "trap"}, "spec": {
            "deploymentTargetClassName": "standard",
            "kubernetesCredentials": {"defaultNamespace": OWN}}}),
    )
    .await;
    until_some(async || (phase(&targets(&client), "trap").await? == "Available").then_some(())).await;
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert!(events.last().unwrap().data.contains("the service's own namespace"), "{events:#?}");
    let pods = Api::<Pod>::namespaced(client, OWN).list(&ListParams::default()).await.unwrap();
    assert!(pods.items.is_empty());
}

#[tokio::test]
async fn a_released_environment_is_freed_by_its_label() {
    let (service, client) = with_environments(|_| {}).await;
    add_class(&client, "standard", json!({"reclaimPolicy": "Retain"})).await;
    let (ada, grace) = (service.user("ada").unwrap(), service.user("grace").unwrap());
    ada.spawn_to_end("ada").await.unwrap();
    ada.stop_to_end("ada").await.unwrap();
    let name = until_some(async || {
        let all = targets(&client).list(&ListParams::default()).await.unwrap().items;
        all.into_iter().find(|target| target.data["status"]["phase"] == "Released")?.metadata.name
    })
    .await;
    let freed = Patch::Merge(json!({"metadata": {"labels": {"wasmspawner.io/released": null}}}));
    targets(&client).patch(&name, &PatchParams::default(), &freed).await.unwrap();
    until_some(async || (phase(&targets(&client), &name).await? == "Available").then_some(())).await;
    grace.spawn_to_end("grace").await.unwrap();
    let pods = Api::<Pod>::namespaced(client, "nublado-ada").list(&ListParams::default()).await.unwrap();
    assert_eq!(pods.items[0].metadata.name.as_deref(), Some("nb-grace"));
}

#[tokio::test]
async fn labs_without_the_section_are_as_before_and_a_policy_s_class_is_an_error() {
    let default = |config: &mut Value| {
        config["policies"] = json!([{
            "name": "default",
            "path": wasmspawner_tests::guests::component("policy-default"),
            "config": { "environment_class": "gpu" },
        }]);
        config["lab"]["image"] = "registry.example.org/lab:1".into();
    };
    let service = Service::start_with(BINARY, default).await.unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    let failed = &events.last().unwrap().data;
    assert!(
        failed.contains("chooses the environment class `gpu`") && failed.contains("`environments`"),
        "{failed}"
    );
    tokio::time::timeout(Duration::from_secs(30), ada.stop_to_end("ada")).await.unwrap().unwrap();
}
