//! `GET /labs/{username}` and `DELETE /labs/{username}`, and the same for named servers.

use serde_json::json;
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::service::Service;

use crate::BINARY;

#[tokio::test]
async fn the_state_of_a_lab_shows_its_environment_without_secrets() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    let env =
        json!({ "JUPYTERHUB_API_TOKEN": "s3cret-of-the-hub", "MY_PASSWORD": "s3cret-too", "PLAIN": "seen" });
    assert_eq!(ada.spawn_with("ada", &json!({ "env": env })).await.unwrap().status, 303);
    ada.events("ada").await.unwrap().to_end().await.unwrap();

    let answer = ada.lab("ada").await.unwrap();
    let lab = answer.json().unwrap();
    for (field, expected) in [
        ("username", json!("ada")),
        ("server", json!("")),
        ("status", json!("running")),
        ("pod", json!("present")),
        ("uid", json!(1000)),
        ("gid", json!(1000)),
        ("groups", json!([{ "name": "users", "id": 1000 }])),
        ("progress", json!(100)),
        ("stage", json!("Running")),
    ] {
        assert_eq!(lab[field], expected, "{field} of {lab:#}");
    }
    assert_eq!(lab["image"]["reference"], "lab:1");
    assert_eq!(lab["policy"][0]["name"], "stagehand");
    assert!(lab["policy"][0]["digest"].as_str().unwrap().starts_with("sha256:"));
    assert!(lab["url"].as_str().unwrap().starts_with("http://"), "{lab:#}");
    assert_eq!(lab["env"]["PLAIN"], "seen");
    assert_eq!(lab["env"]["JUPYTERHUB_API_TOKEN"], "<redacted>");
    assert!(!answer.body.contains("s3cret"), "{}", answer.body);
    assert!(!service.log().contains("s3cret"), "a secret is in the log");
}

/// Administrators see who decided each field, even after a restart. Users see none of it.
#[tokio::test]
async fn administrators_see_who_decided_which_field_of_a_lab() {
    let mut service =
        Service::start_with(BINARY, |config| config["embedded"]["keep_labs"] = true.into()).await.unwrap();
    service.user("ada").unwrap().spawn_to_end("ada").await.unwrap();
    for _ in 0..2 {
        let seen = async |client: Client| {
            let lab = client.lab("ada").await.unwrap().json().unwrap();
            let history = client.get(&format!("{PREFIX}/labs/ada/history")).await.unwrap().json().unwrap();
            (lab["decided_by"].clone(), history[0]["decided_by"].clone())
        };
        let (of_lab, of_history) = seen(service.admin().unwrap()).await;
        assert_eq!(of_lab["policy `stagehand`"], json!(["image"]), "{of_lab:#}");
        assert_eq!(of_lab, of_history);
        assert_eq!(seen(service.user("ada").unwrap()).await, (json!(null), json!(null)));
        service.crash_and_restart().await.unwrap();
    }
}

#[tokio::test]
async fn only_owner_hub_and_administrators_read_or_stop_a_lab() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    for client in [&ada, &service.hub().unwrap(), &service.admin().unwrap()] {
        assert_eq!(client.lab("ada").await.unwrap().status, 200);
    }
    let bob = service.user("bob").unwrap();
    for other in ["ada", "nobody"] {
        assert_eq!(bob.lab(other).await.unwrap().problem().unwrap(), "403 permission_denied", "{other}");
        assert_eq!(bob.stop(other).await.unwrap().problem().unwrap(), "403 permission_denied", "{other}");
    }
    assert_eq!(bob.lab("bob").await.unwrap().problem().unwrap(), "404 unknown_lab");
    let nobody = service.client("ada", &[]).unwrap();
    assert_eq!(nobody.lab("ada").await.unwrap().problem().unwrap(), "403 permission_denied");
}

#[tokio::test]
async fn a_stopped_lab_is_unknown() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.stop("ada").await.unwrap().problem().unwrap(), "404 unknown_lab");
    ada.spawn_to_end("ada").await.unwrap();
    let hub = service.hub().unwrap();
    assert_eq!(hub.stop("ada").await.unwrap().status, 202);
    let events = hub.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert_eq!(ada.lab("ada").await.unwrap().problem().unwrap(), "404 unknown_lab");
    assert_eq!(ada.stop("ada").await.unwrap().problem().unwrap(), "404 unknown_lab");
}

#[tokio::test]
async fn repeated_stops_are_one_stop_and_a_stop_ends_a_spawn() {
    let service = Service::start(BINARY).await.unwrap();
    let name = "fault.not-ready";
    let user = service.user(name).unwrap();
    assert_eq!(user.spawn(name).await.unwrap().status, 303);
    assert_eq!(user.lab(name).await.unwrap().json().unwrap()["status"], "starting");
    let stops = futures::future::join_all((0..5).map(|_| user.stop(name))).await;
    let statuses: Vec<u16> = stops.into_iter().map(|stop| stop.unwrap().status).collect();
    assert!(
        statuses.iter().all(|status| [202, 404].contains(status)) && statuses.contains(&202),
        "{statuses:?}"
    );
    let events = user.events(name).await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert_eq!(user.lab(name).await.unwrap().status, 404);
}

#[tokio::test]
async fn each_named_server_is_a_separate_lab() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    let named = "ada/servers/gpu%20box";
    assert_eq!(ada.lab(named).await.unwrap().status, 404);
    let answer = ada.spawn(named).await.unwrap();
    assert_eq!((answer.status, answer.header("location")), (303, "/spawner/v1/labs/ada/servers/gpu%20box"));
    ada.events(named).await.unwrap().to_end().await.unwrap();
    let lab = ada.lab(named).await.unwrap().json().unwrap();
    assert_eq!((&lab["server"], &lab["status"]), (&json!("gpu box"), &json!("running")));
    assert_eq!(ada.stop(named).await.unwrap().status, 202);
    ada.events(named).await.unwrap().to_end().await.unwrap();
    assert_eq!(ada.lab(named).await.unwrap().status, 404);
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
}
