//! Restarts and crashes of the service.

use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_running;

use super::records::is_recorded_as_ready;
use super::running::until;
use super::spawn::accepted;
use crate::BINARY;

#[tokio::test]
async fn a_running_lab_and_its_history_survive_a_crash_of_the_service() {
    let mut service =
        Service::start_with(BINARY, |config| config["embedded"]["keep_labs"] = true.into()).await.unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    // The record contains the readiness a moment after the events. A service that starts without it finds the lab
    // ready, and ends its spawn once more.
    is_recorded_as_ready(&service, "lab-ada").await;
    let before = ada.lab("ada").await.unwrap().json().unwrap();
    let history = ada.get(&format!("{PREFIX}/labs/ada/history")).await.unwrap().json().unwrap();

    service.crash_and_restart().await.unwrap();
    let after = until_running(&ada, "ada").await;
    let differing: Vec<_> = before
        .as_object()
        .unwrap()
        .iter()
        .filter(|(field, value)| after[*field] != **value)
        .map(|(field, value)| format!("{field}: {value} became {}", after[field]))
        .collect();
    assert_eq!(differing, [""; 0]);
    assert_eq!(ada.get(&format!("{PREFIX}/labs/ada/history")).await.unwrap().json().unwrap(), history);
    let replayed = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(replayed, events, "the events of a spawn that is over are replayed, and end");
    assert_eq!(ada.spawn("ada").await.unwrap().problem().unwrap(), "409 lab_exists");
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert_eq!(ada.lab("ada").await.unwrap().status, 404);
}

#[tokio::test]
async fn a_spawn_whose_pod_exists_continues_after_a_crash_of_the_service() {
    let slow = |config: &mut serde_json::Value| {
        config["embedded"]["keep_labs"] = true.into();
        config["embedded"]["simulated"] = serde_json::json!({ "pull": "3s", "ready": "1s" });
    };
    let mut service = Service::start_with(BINARY, slow).await.unwrap();
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
    let mut events = ada.events("ada").await.unwrap();
    let seen = events.next_of("stage").await.unwrap();

    service.crash_and_restart().await.unwrap();
    let rest = ada.events_after("ada", Some(&seen.id)).await.unwrap().to_end().await.unwrap();
    assert_eq!(rest.last().unwrap().kind, "complete", "{rest:#?}");
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_ends_closes_its_streams_first() {
    let mut service = Service::start(BINARY).await.unwrap();
    let user = service.user("fault.not-ready").unwrap();
    assert_eq!(user.spawn("fault.not-ready").await.unwrap().status, 303);
    let mut events = user.events("fault.not-ready").await.unwrap();
    assert!(events.next().await.unwrap().is_some());
    let reader = tokio::spawn(async move { events.to_end().await });
    let status = tokio::task::block_in_place(|| service.end()).unwrap();
    assert!(status.success(), "{status}");
    let rest = reader.await.unwrap().unwrap();
    assert!(rest.iter().all(|event| event.kind != "complete" && event.kind != "failed"), "{rest:#?}");
    assert!(service.log().contains("the service has ended"), "the last line is not in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_during_many_spawns_loses_none() {
    let keeping = |config: &mut serde_json::Value| {
        config["embedded"]["keep_labs"] = true.into();
        // A loaded machine needs more time than the defaults.
        config["limits"]["drain"] = "5m".into();
        config["policies"][0]["limits"] = serde_json::json!({ "deadline_ms": 10_000 });
    };
    let mut service = Service::start_with(BINARY, keeping).await.unwrap();
    let admin = service.admin().unwrap();
    let names: Vec<String> = (0..200).map(|number| format!("user-{number}")).collect();
    futures::future::join_all(names.iter().map(|name| accepted(&admin, name))).await;
    let status = tokio::task::block_in_place(|| service.end()).unwrap();
    assert!(status.success(), "{status}");
    service.run().await.unwrap();
    for name in &names {
        let lab = until(&admin, name, |lab| lab["status"] != "starting").await;
        assert_eq!(lab["status"], "running", "{name}: {lab:#}");
    }
}
