//! `GET /jobs/{job_id}`, and a history in NATS.

use std::process::Command;

use serde_json::{Value, json};
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::events::Event;
use wasmspawner_tests::nats::{NatsServer, SKIPPED};
use wasmspawner_tests::service::{Service, own_address};
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

/// The operation of these events.
fn id_of(events: &[Event]) -> String {
    events[0].id[..36].to_owned()
}

async fn job(client: &Client, id: &str) -> Value {
    let answer = client.get(&format!("{PREFIX}/jobs/{id}")).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json().unwrap()
}

fn stages(job: &Value) -> Vec<&str> {
    job["stages"].as_array().unwrap().iter().filter_map(|stage| stage["stage"].as_str()).collect()
}

#[tokio::test]
async fn an_operation_is_read_by_its_id_by_those_who_may_see_its_lab() {
    let mut service =
        Service::start_with(BINARY, |config| config["embedded"]["keep_labs"] = true.into()).await.unwrap();
    let ada = service.user("ada").unwrap();
    let spawned = ada.spawn_to_end("ada").await.unwrap();
    let spawn = job(&ada, &id_of(&spawned)).await;
    assert_eq!(
        (&spawn["username"], &spawn["server"], &spawn["child"], &spawn["outcome"]),
        (&json!("ada"), &json!(""), &json!(null), &json!("complete"))
    );
    assert_eq!(spawn["events"].as_array().unwrap().len(), spawned.len());
    assert_eq!(job(&service.admin().unwrap(), &id_of(&spawned)).await["kind"], "spawn");
    let problem = async |client: &Client, id: &str| {
        client.get(&format!("{PREFIX}/jobs/{id}")).await.unwrap().problem().unwrap()
    };
    let bob = service.user("bob").unwrap();
    assert_eq!(problem(&bob, &id_of(&spawned)).await, "404 unknown_job", "nobody learns that it exists");
    assert_eq!(problem(&ada, "01a1fd9e-deb5-7652-a3d6-2d71fc436701").await, "404 unknown_job");
    assert_eq!(problem(&ada, "latest").await, "422 invalid_name");
    let stopped = ada.stop_to_end("ada").await.unwrap();
    assert_eq!(stages(&job(&ada, &id_of(&stopped)).await), ["Terminating", "Stopped"]);
    let failed = service.user("fault.pull-failure").unwrap();
    let events = failed.spawn_to_end("fault.pull-failure").await.unwrap();
    assert_eq!(stages(&job(&failed, &id_of(&events)).await).last(), Some(&"Failed"));
    let last_stage = events.iter().rfind(|event| event.kind == "stage").unwrap();
    assert!(last_stage.data.contains("\"Failed\""), "{events:#?}");
    assert!(service.end().unwrap().success());
    service.run().await.unwrap();
    assert_eq!(job(&ada, &id_of(&spawned)).await, spawn);
}

/// What `wasmspawner jobs show` reads from NATS, without the service.
fn from_nats(service: &Service, id: &str) -> Option<Value> {
    let shown = Command::new(BINARY)
        .args(["jobs", "show", id, "--json", "--config"])
        .arg(service.config_file())
        .output()
        .unwrap();
    shown.status.success().then(|| serde_json::from_slice(&shown.stdout).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_nats_that_is_away() {
    let Some(mut nats) = NatsServer::start(own_address(), "") else { return println!("{SKIPPED}") };
    let mut service = Service::start_with(BINARY, |config| {
        config["embedded"]["keep_labs"] = true.into();
        config["history"] = json!({ "nats": { "servers": [nats.url()] } });
    })
    .await
    .unwrap();
    let ada = service.user("ada").unwrap();
    let body = json!({ "env": { "DATABASE": "s3cret-of-ada" } });
    assert_eq!(ada.spawn_with("ada", &body).await.unwrap().status, 303);
    let spawned = ada.events("ada").await.unwrap().to_end().await.unwrap();
    let stored =
        until_some(async || from_nats(&service, &id_of(&spawned)).filter(|job| job["outcome"] == "complete"))
            .await;
    assert_eq!(stored["events"].as_array().unwrap().len(), spawned.len());
    let shown = Command::new(BINARY)
        .args(["jobs", "show", &id_of(&spawned), "--config"])
        .arg(service.config_file())
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.starts_with("spawn of ada, began ") && shown.contains("stage Running"), "{shown}");

    nats.kill();
    let eve = service.user("eve").unwrap();
    let of_eve = eve.spawn_to_end("eve").await.unwrap();
    assert_eq!(of_eve.last().unwrap().kind, "complete", "{of_eve:#?}");
    until_some(async || {
        let metrics = service.probes().get("/metrics").await.unwrap();
        metrics.body.contains("wasmspawner_history_failing 1\n").then_some(())
    })
    .await;
    assert_eq!(job(&eve, &id_of(&of_eve)).await["outcome"], "complete", "it is in memory");
    nats.run();
    until_some(async || from_nats(&service, &id_of(&of_eve)).filter(|job| job["outcome"] == "complete"))
        .await;
    let metrics = service.probes().get("/metrics").await.unwrap();
    assert!(metrics.body.contains("wasmspawner_history_dropped_total 0\n"), "{}", metrics.body);

    // Another process begins with what this one has written.
    service.crash_and_restart().await.unwrap();
    let eve = service.user("eve").unwrap();
    assert_eq!(job(&eve, &id_of(&of_eve)).await["events"].as_array().unwrap().len(), of_eve.len());
    assert_eq!(eve.events("eve").await.unwrap().to_end().await.unwrap(), of_eve);
    // NATS has no secret of a user, in whatever form it keeps things.
    nats.kill();
    let kept = Command::new("grep").args(["-r", "-l", "s3cret-of-ada"]).arg(nats.folder()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&kept.stdout), "");
    assert!(!service.log().contains("s3cret-of-ada"));
}
