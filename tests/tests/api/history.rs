//! `GET /labs/{username}/history`

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

#[tokio::test]
async fn operations_are_listed_newest_first() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    let path = format!("{PREFIX}/labs/ada/history");
    assert_eq!(ada.get(&path).await.unwrap().problem().unwrap(), "404 unknown_lab");
    let spawned = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    ada.events("ada").await.unwrap().to_end().await.unwrap();

    let history = ada.get(&path).await.unwrap().json().unwrap();
    let kinds: Vec<_> =
        history.as_array().unwrap().iter().map(|operation| operation["kind"].clone()).collect();
    assert_eq!(kinds, ["stop", "spawn"], "{history:#}");
    let spawn = &history[1];
    assert_eq!(spawn["outcome"], json!("complete"), "{spawn:#}");
    assert_eq!(spawn["job_id"], spawned[0].id[..36]);
    assert_eq!(spawn["events"].as_array().unwrap().len(), spawned.len());
    assert!(spawn["stages"].as_array().unwrap().iter().any(|stage| stage["stage"] == "Running"), "{spawn:#}");
    assert!(spawn["ended_at"].is_string(), "{spawn:#}");
    let bob = service.user("bob").unwrap();
    assert_eq!(bob.get(&path).await.unwrap().problem().unwrap(), "403 permission_denied");
}

/// A policy receives the use of past days.
#[tokio::test]
async fn what_a_user_has_used_counts_while_the_lab_runs_and_after_a_crash_of_the_service() {
    let mut service =
        Service::start_with(BINARY, |config| config["embedded"]["keep_labs"] = true.into()).await.unwrap();
    let frugal = service.user("frugal").unwrap();
    frugal.spawn_to_end("frugal").await.unwrap();
    let another = async |user: &Client| user.spawn("frugal/servers/two").await.unwrap();
    until_some(async || {
        let answer = another(&frugal).await;
        if answer.status == 303 {
            let _ = frugal.stop_to_end("frugal/servers/two").await.unwrap();
        }
        answer.problem().ok().filter(|problem| problem == "403 permission_denied")
    })
    .await;
    service.crash_and_restart().await.unwrap();
    let frugal = service.user("frugal").unwrap();
    assert_eq!(another(&frugal).await.problem().unwrap(), "403 permission_denied");
    frugal.stop_to_end("frugal").await.unwrap();
    assert_eq!(another(&frugal).await.problem().unwrap(), "403 permission_denied");
}

#[tokio::test]
async fn an_evicted_lab_has_failed_and_its_history_says_why() {
    let service = Service::start(BINARY).await.unwrap();
    let name = "later.evicted";
    let user = service.user(name).unwrap();
    let spawned = user.spawn_to_end(name).await.unwrap();
    assert_eq!(spawned.last().unwrap().kind, "complete", "{spawned:#?}");
    let crashed = user.next_operation(name, &spawned).await.unwrap();
    assert_eq!(crashed.last().unwrap().kind, "failed", "{crashed:#?}");
    let lab = user.lab(name).await.unwrap().json().unwrap();
    assert_eq!((&lab["status"], &lab["reason"]), (&json!("failed"), &json!("Evicted")));
    let history = user.get(&format!("{PREFIX}/labs/{name}/history")).await.unwrap().json().unwrap();
    assert_eq!((&history[0]["kind"], &history[1]["kind"]), (&json!("cleanup"), &json!("spawn")));
    assert_eq!(
        (&history[0]["outcome"], &history[0]["failure"]["reason"]),
        (&json!("failed"), &json!("Evicted"))
    );
    assert_eq!((&history[1]["outcome"], &history[1]["failure"]), (&json!("complete"), &json!(null)));
}

#[tokio::test]
async fn a_lab_whose_pod_is_deleted_is_removed() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    let spawned = ada.spawn_to_end("ada").await.unwrap();
    let pods: Api<Pod> = Api::namespaced(service.cluster().await.unwrap(), "nublado-ada");
    pods.delete("nb-ada", &DeleteParams::default()).await.unwrap();
    let cleaned = ada.next_operation("ada", &spawned).await.unwrap();
    assert_eq!(cleaned.last().unwrap().kind, "complete", "{cleaned:#?}");
    assert_eq!(ada.lab("ada").await.unwrap().status, 404);
    let history = ada.get(&format!("{PREFIX}/labs/ada/history")).await.unwrap().json().unwrap();
    assert_eq!((&history[0]["kind"], &history[0]["outcome"]), (&json!("cleanup"), &json!("complete")));
}

#[tokio::test]
async fn the_history_of_a_failure_has_the_events_of_the_cluster() {
    let service = Service::start(BINARY).await.unwrap();
    let name = "fault.pull-failure";
    service.user(name).unwrap().spawn_to_end(name).await.unwrap();
    let history =
        service.hub().unwrap().get(&format!("{PREFIX}/labs/{name}/history")).await.unwrap().json().unwrap();
    let events = history[0]["cluster_events"].as_array().unwrap();
    let pull = events.iter().find(|event| event["severity"] == "critical").unwrap();
    assert_eq!(
        (&pull["source"], &pull["reason"]),
        (&json!("container/notebook"), &json!("ErrImagePull")),
        "{pull:#}"
    );
    let failure = &history[0]["failure"];
    assert_eq!(
        (&history[0]["outcome"], &failure["blame"]),
        (&json!("failed"), &json!("cluster")),
        "{history:#}"
    );
    assert!(
        !failure["reason"].as_str().unwrap().is_empty() && !failure["message"].as_str().unwrap().is_empty()
    );
}

#[tokio::test]
async fn the_history_of_all_labs_together_is_bounded() {
    let few = |config: &mut serde_json::Value| config["limits"] = json!({ "history_operations": 2 });
    let mut service = Service::start_with(BINARY, few).await.unwrap();
    let (ada, grace) = (service.user("ada").unwrap(), service.user("grace").unwrap());
    ada.spawn_to_end("ada").await.unwrap();
    grace.spawn_to_end("grace").await.unwrap();
    assert_eq!(grace.stop("grace").await.unwrap().status, 202);
    grace.events("grace").await.unwrap().to_end().await.unwrap();
    let of = |name: &str| format!("{PREFIX}/labs/{name}/history");
    let kept = async || {
        let history = grace.get(&of("grace")).await.unwrap().json().unwrap();
        let kinds: Vec<_> = history.as_array().unwrap().iter().map(|one| one["kind"].clone()).collect();
        (ada.get(&of("ada")).await.unwrap().status, kinds)
    };
    assert_eq!(kept().await, (404, vec![json!("stop"), json!("spawn")]));
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
    let metrics = service.probes().get("/metrics").await.unwrap();
    assert!(metrics.body.contains("wasmspawner_history_operations 2\n"), "{}", metrics.body);
    // After a restart the lab is running. No new operation is added, which would push out another.
    assert!(service.end().unwrap().success());
    service.run().await.unwrap();
    assert_eq!(kept().await, (404, vec![json!("stop"), json!("spawn")]));
    assert_eq!(ada.events("ada").await.unwrap().to_end().await.unwrap().last().unwrap().kind, "complete");
}
