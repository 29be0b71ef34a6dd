//! `GET /labs/{username}/history`

use serde_json::json;
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;

use crate::BINARY;

#[tokio::test]
async fn operations_are_remembered_newest_first() {
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

#[tokio::test]
async fn a_failure_is_remembered_with_its_reason() {
    let service = Service::start(BINARY).await.unwrap();
    let name = "fault.pull-failure";
    service.user(name).unwrap().spawn_to_end(name).await.unwrap();
    let history =
        service.hub().unwrap().get(&format!("{PREFIX}/labs/{name}/history")).await.unwrap().json().unwrap();
    let failure = &history[0]["outcome"]["failed"];
    assert_eq!(failure["blame"], "cluster", "{history:#}");
    assert!(
        !failure["reason"].as_str().unwrap().is_empty() && !failure["message"].as_str().unwrap().is_empty()
    );
}
