//! Labs in workloads, on a real API server with the real controllers of workloads, and with exactly the permissions for
//! this.

mod interleavings;
mod owners;
pub(crate) mod shop;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ListParams};
use serde_json::json;
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::kubernetes::SKIPPED;
use wasmspawner_tests::waiting::until_running;

use crate::labs::{assert_permitted, gone, service_with, stop};
use crate::site::{CLUSTER_WIDE, ONE_NAMESPACE, Site, until};
use shop::{Shop, server};

#[tokio::test(flavor = "multi_thread")]
async fn two_users_have_labs_in_a_web_service_which_is_afterwards_as_before() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    let mut shop = Shop::open(&site, "delete").await;
    let web = shop.deploy("web", 3).await;
    let (ada, grace) = (shop.service.user("ada").unwrap(), shop.service.user("grace").unwrap());
    let of_ada = shop.spawn(&ada, "ada", "deployment", "web").await;
    assert_eq!(of_ada.last().unwrap().kind, "complete", "{of_ada:#?}");
    let lab = server("ada", "deployment", &shop.namespace, "web");
    let record = shop.record("ada").await;
    assert_eq!(record["spec"]["kind"], "Injected");
    assert_eq!(record["spec"]["place"]["workload"]["kind"], "Deployment", "{record}");
    assert_eq!(record["spec"]["place"]["workload"]["uid"], json!(web.metadata.uid));
    let running = ada.lab(&lab).await.unwrap().json().unwrap();
    assert_eq!(running["status"], "running", "{running}");
    shop.rolled_out("web").await;
    let pods = shop.pods("web").await;
    assert_eq!(pods.len(), 3);
    let running = ada.lab(&lab).await.unwrap().json().unwrap();
    let url = running["url"].as_str().unwrap();
    assert!(
        pods.iter().any(|pod| url.contains(pod.status.as_ref().unwrap().pod_ip.as_deref().unwrap())),
        "{url}"
    );

    let again =
        ada.spawn_with("ada", &json!({ "user_string": shop.user_string("ada", "deployment", "web") })).await;
    let again = again.unwrap();
    assert_eq!((again.status, again.header("location")), (409, format!("{PREFIX}/labs/{lab}").as_str()));

    let of_grace = shop.spawn(&grace, "grace", "deployment", "web").await;
    assert_eq!(of_grace.last().unwrap().kind, "complete", "{of_grace:#?}");
    let spec = shop.get("web").await.spec.unwrap().template.spec.unwrap();
    assert_eq!(spec.containers.len(), 3);
    let mut ports: Vec<i32> = spec
        .containers
        .iter()
        .flat_map(|one| one.ports.iter().flatten())
        .map(|port| port.container_port)
        .collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 3, "{ports:?}");
    // The other lab, whose pods were replaced, reports this.
    until(async || ada.lab(&lab).await.unwrap().json().unwrap()["reason"] == "Moved").await;
    assert_eq!(ada.lab(&lab).await.unwrap().json().unwrap()["status"], "running");

    shop.service.crash_and_restart().await.unwrap();
    for (user, client) in [("ada", &ada), ("grace", &grace)] {
        let lab = server(user, "deployment", &shop.namespace, "web");
        until_running(client, &lab).await;
    }
    let events = ada.stop_to_end(&lab).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let lab = server("grace", "deployment", &shop.namespace, "web");
    assert_eq!(grace.lab(&lab).await.unwrap().json().unwrap()["status"], "running");
    assert_eq!(shop.get("web").await.spec.unwrap().template.spec.unwrap().containers.len(), 2);
    assert_eq!(grace.stop(&lab).await.unwrap().status, 202);
    gone(&site.spawns(), &shop.record_name("grace")).await;
    gone(&site.spawns(), &shop.record_name("ada")).await;

    let after = shop.get("web").await;
    assert_eq!(after.spec.unwrap().template, web.spec.clone().unwrap().template);
    let managers = after.metadata.managed_fields.unwrap();
    assert!(managers.iter().all(|entry| !entry.manager.as_ref().unwrap().starts_with("wasmspawner")));
    let client = site.cluster.client.clone();
    let revisions = Api::<ReplicaSet>::namespaced(client.clone(), &shop.namespace);
    let revisions = revisions.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(revisions.len(), 1, "no rollback brings a lab back: {revisions:#?}");
    let ours = ListParams::default().labels("app.kubernetes.io/managed-by=wasmspawner");
    let maps = Api::<ConfigMap>::namespaced(client.clone(), &shop.namespace);
    assert!(maps.list(&ours).await.unwrap().items.is_empty());
    let secrets = Api::<Secret>::namespaced(client, &shop.namespace);
    assert!(secrets.list(&ours).await.unwrap().items.is_empty());
    assert_permitted(&shop.service);
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lab_that_nobody_may_have_changes_nothing() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    let shop = Shop::open(&site, "single").await;
    let web = shop.deploy("web", 1).await;
    shop.deploy("off-limits", 1).await;
    shop.deploy("scaled", 0).await;
    let ada = shop.service.user("ada").unwrap();
    let other = site.namespace("other").await;
    for (user_string, problem, text) in [
        (shop.user_string("ada", "deployment", "undone"), "409 workload_refused", "there is no deployment/"),
        (shop.user_string("ada", "statefulset", "web"), "409 workload_refused", "there is no statefulset/"),
        (
            shop.user_string("ada", "deployment", "off-limits"),
            "403 permission_denied",
            "You may not have a lab in",
        ),
        (
            shop.user_string("ada", "deployment", "unknown"),
            "403 permission_denied",
            "You may not have a lab in",
        ),
        (shop.user_string("ada", "deployment", "scaled"), "409 workload_refused", "has no pods"),
        (format!("ada~workload=deployment/{other}/web"), "422 not_offered", "of this namespace"),
        (
            format!("ada~workload=deployment/{}/wasmspawner", site.name()),
            "422 not_offered",
            "of this namespace",
        ),
    ] {
        let answer = ada.spawn_with("ada", &json!({ "user_string": user_string })).await.unwrap();
        assert_eq!(answer.problem().unwrap(), problem, "{user_string}: {answer:?}");
        assert!(answer.json().unwrap()["detail"][0]["msg"].as_str().unwrap().contains(text), "{answer:?}");
    }
    for (workload, problem) in [
        ("web".to_owned(), "422 invalid_option"),
        (format!("deployment/{}/undone", shop.namespace), "409 workload_refused"),
    ] {
        let of_form = json!({ "options": { "workload": workload } });
        let answer = ada.spawn_with("ada/servers/debug", &of_form).await.unwrap();
        assert_eq!(answer.problem().unwrap(), problem, "{workload}: {answer:?}");
    }
    let deployments = Api::<Deployment>::namespaced(site.cluster.client.clone(), &shop.namespace);
    let now = deployments.get("web").await.unwrap();
    assert_eq!(now.metadata.generation, web.metadata.generation);
    assert!(site.spawns().list(&ListParams::default()).await.unwrap().items.is_empty());
    assert_permitted(&shop.service);
    site.leave().await;
}

/// The owner may have deleted the namespace, and with it the permissions there.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_cannot_be_listed_keeps_the_service_from_no_other_lab() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    let labs = site.namespace("labs").await;
    let away = format!("{}-away", site.name());
    let mut service = service_with(&site, "single", &labs, |config| {
        config["workloads"] = json!({ "namespaces": [away] });
        config["policies"][0]["config"]["workloads"] = json!([{ "workloads": ["*/*/*"] }]);
    });
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let body = json!({ "options": { "workload": format!("deployment/{away}/web") } });
    let refused = ada.spawn_with("ada/servers/debug", &body).await.unwrap();
    assert_eq!(refused.problem().unwrap(), "503 cluster_unavailable", "{refused:?}");
    service.logged("apply deploy/permissions/workloads.yaml there").await.unwrap();
    stop(&service, "ada").await;
    site.leave().await;
}
