//! Limits on the simultaneous requests of one user, so that other users are not affected (`limits.per_user`).

use std::time::Duration;

use serde_json::{Value, json};
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::service::Service;

use crate::BINARY;

async fn service(per_user: Value) -> Service {
    Service::start_with(BINARY, |config| config["limits"]["per_user"] = per_user).await.unwrap()
}

#[tokio::test]
async fn a_user_may_ask_for_so_many_labs_per_minute_and_others_for_theirs() {
    let service = service(json!({ "spawns_per_minute": 2 })).await;
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
    for _ in 0..5 {
        assert_eq!(ada.spawn("ada").await.unwrap().status, 409, "it does not count: nobody is asked");
    }
    assert_eq!(ada.spawn("ada/servers/b").await.unwrap().status, 303);
    let refused = ada.spawn("ada/servers/c").await.unwrap();
    assert_eq!(refused.problem().unwrap(), "429 too_many_spawns_of_user");
    assert_eq!(refused.header("retry-after"), "30");
    assert_eq!(service.user("grace").unwrap().spawn("grace").await.unwrap().status, 303);
    let admin = service.admin().unwrap();
    for server in ["ada/servers/d", "ada/servers/e", "ada/servers/f"] {
        assert_eq!(admin.spawn(server).await.unwrap().status, 303, "an administrator acts for everybody");
    }
}

#[tokio::test]
async fn a_user_has_so_many_labs_whoever_starts_them() {
    let service = service(json!({ "labs": 2 })).await;
    let admin = service.admin().unwrap();
    for server in ["ada", "ada/servers/b"] {
        assert_eq!(admin.spawn(server).await.unwrap().status, 303);
    }
    let refused = admin.spawn("ada/servers/c").await.unwrap();
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("2 labs at a time"), "{}", refused.body);
    assert_eq!(admin.spawn("grace").await.unwrap().status, 303);
}

#[tokio::test]
async fn a_user_reads_so_many_event_streams_at_a_time() {
    let service = service(json!({ "event_streams": 2 })).await;
    let ada = service.user("fault.not-ready").unwrap();
    assert_eq!(ada.spawn("fault.not-ready").await.unwrap().status, 303);
    let first = ada.events("fault.not-ready").await.unwrap();
    let _second = ada.events("fault.not-ready").await.unwrap();
    let path = format!("{PREFIX}/labs/fault.not-ready/events");
    assert_eq!(ada.get(&path).await.unwrap().problem().unwrap(), "429 too_many_streams");
    let hub = service.hub().unwrap();
    for _ in 0..3 {
        hub.events("fault.not-ready").await.unwrap();
    }
    drop(first);
    until(async || ada.events("fault.not-ready").await.is_ok()).await;
}

#[tokio::test]
async fn requests_of_one_user_beyond_the_limit_wait_and_are_refused() {
    let service = service(json!({ "requests_at_once": 1 })).await;
    let (ada, grace) = (service.user("ada").unwrap(), service.user("grace").unwrap());
    let waiting = service.user("ada").unwrap();
    // The body never arrives, so this request is not answered before the client disconnects.
    let head = format!(
        "POST {PREFIX}/labs/ada/spawn HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2"
    );
    let waiting = tokio::spawn(async move { waiting.raw(&head).await });
    until(async || lab(&ada, "ada").await == "429 too_many_requests").await;
    assert_eq!(lab(&grace, "grace").await, "404 unknown_lab", "others are answered");
    waiting.abort();
    until(async || lab(&ada, "ada").await == "404 unknown_lab").await;
}

#[tokio::test]
async fn a_burst_of_one_user_is_refused_in_the_end_and_others_are_answered() {
    let service = service(json!({ "requests_per_second": 1 })).await;
    let ada = service.user("ada").unwrap();
    let burst = futures::future::join_all((0..40).map(async |_| lab(&ada, "ada").await)).await;
    let answered = burst.iter().filter(|answer| *answer == "404 unknown_lab").count();
    let refused = burst.iter().filter(|answer| *answer == "429 too_many_requests").count();
    assert_eq!(answered + refused, 40, "{burst:?}");
    assert!(answered >= 10 && refused > 0, "ten seconds' worth may come at once: {burst:?}");
    let grace = service.user("grace").unwrap();
    assert_eq!(lab(&grace, "grace").await, "404 unknown_lab");
}

/// The service's answer about a lab that does not exist.
async fn lab(client: &Client, user: &str) -> String {
    client.lab(user).await.unwrap().problem().unwrap()
}

async fn until(condition: impl AsyncFn() -> bool) {
    let met = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), met).await.unwrap();
}
