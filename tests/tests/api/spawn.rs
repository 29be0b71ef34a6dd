//! `POST /labs/{username}/spawn`

use serde_json::json;
use wasmspawner_tests::api::Client;
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

#[tokio::test]
async fn the_answer_to_a_spawn_has_the_location_of_the_lab() {
    let service = Service::start(BINARY).await.unwrap();
    let name = "ada.lovelace@example.org";
    let answer = service.user(name).unwrap().spawn(name).await.unwrap();
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), "/spawner/v1/labs/ada.lovelace@example.org");
}

#[tokio::test]
async fn a_spawn_is_refused_while_a_lab_or_an_operation_exists() {
    let service = Service::start(BINARY).await.unwrap();
    let stuck = service.user("fault.not-ready").unwrap();
    assert_eq!(stuck.spawn("fault.not-ready").await.unwrap().status, 303);
    let second = stuck.spawn("fault.not-ready").await.unwrap();
    assert_eq!(second.problem().unwrap(), "409 spawn_in_progress");

    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(ada.spawn("ada").await.unwrap().problem().unwrap(), "409 lab_exists");

    let slow = service.user("stop.1m").unwrap();
    slow.spawn_to_end("stop.1m").await.unwrap();
    assert_eq!(slow.stop("stop.1m").await.unwrap().status, 202);
    assert_eq!(slow.spawn("stop.1m").await.unwrap().problem().unwrap(), "409 stop_in_progress");
}

#[tokio::test]
async fn parallel_spawns_do_not_exceed_the_quota() {
    let one_lab = |config: &mut serde_json::Value| {
        config["lab"] = json!({"image": "lab:1"});
        config["policies"] = json!([{
            "name": "default",
            "path": guests::component("policy-default"),
            "config": {"quota": {"default": {"labs": 1}}},
        }]);
    };
    let service = Service::start_with(BINARY, one_lab).await.unwrap();
    let ada = service.user("ada").unwrap();
    let names = ["ada", "ada/servers/b", "ada/servers/c", "ada/servers/d"];
    let answers = futures::future::join_all(names.map(|lab| ada.spawn(lab))).await;
    let mut statuses: Vec<u16> = answers.into_iter().map(|answer| answer.unwrap().status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 403, 403, 403]);
}

/// Requests a lab until it is accepted. A busy machine may have no CPU for the policy in time, and clients then ask
/// again.
pub(crate) async fn accepted(client: &Client, lab: &str) {
    until_some(async || {
        let answer = client.spawn(lab).await.unwrap();
        let busy = answer.status == 503;
        assert!(busy || answer.status == 303, "{lab}: {answer:?}");
        (!busy).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_failed_lab_does_not_block_the_next_spawn() {
    let service = Service::start(BINARY).await.unwrap();
    let name = "fault.pull-failure";
    let user = service.user(name).unwrap();
    let first = user.spawn_to_end(name).await.unwrap();
    assert_eq!(first.last().unwrap().kind, "failed");
    let second = user.spawn_to_end(name).await.unwrap();
    assert_eq!(second.last().unwrap().kind, "failed");
    assert_ne!(first.last().unwrap().id, second.last().unwrap().id);
}

#[tokio::test]
async fn too_many_spawns_at_once_are_refused_with_retry_after() {
    let one = |config: &mut serde_json::Value| config["limits"] = json!({ "concurrent_spawns": 1 });
    let service = Service::start_with(BINARY, one).await.unwrap();
    let stuck = service.user("fault.not-ready").unwrap();
    assert_eq!(stuck.spawn("fault.not-ready").await.unwrap().status, 303);
    let ada = service.user("ada").unwrap();
    let refused = ada.spawn("ada").await.unwrap();
    assert_eq!(refused.problem().unwrap(), "429 too_many_spawns");
    assert!(refused.header("retry-after").parse::<u32>().unwrap() > 0);
    assert_eq!(ada.lab("ada").await.unwrap().status, 404);
    assert_eq!(stuck.stop("fault.not-ready").await.unwrap().status, 202);
    stuck.events("fault.not-ready").await.unwrap().to_end().await.unwrap();
    assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
}

#[tokio::test]
async fn accepted_spawns_wait_for_a_busy_policy() {
    // There are more requests than the policy can answer at once, and its answers take longer than a call waits for a
    // place.
    let service = Service::start(BINARY).await.unwrap();
    let admin = service.admin().unwrap();
    let names: Vec<String> = (0..40).map(|number| format!("slow.{number}")).collect();
    let ends = names.iter().map(async |name| {
        accepted(&admin, name).await;
        let events = admin.events(name).await.unwrap().to_end().await.unwrap();
        events.last().unwrap().kind.clone()
    });
    assert_eq!(futures::future::join_all(ends).await, ["complete"; 40]);
}

#[tokio::test]
async fn only_the_owner_and_administrators_spawn() {
    let service = Service::start(BINARY).await.unwrap();
    for client in [service.user("bob").unwrap(), service.hub().unwrap()] {
        assert_eq!(client.spawn("ada").await.unwrap().problem().unwrap(), "403 permission_denied");
    }
    assert_eq!(service.admin().unwrap().spawn("ada").await.unwrap().status, 303);
}

#[tokio::test]
async fn permission_is_checked_before_the_body() {
    let service = Service::start(BINARY).await.unwrap();
    let bob = service.user("bob").unwrap();
    let request = bob.request(http::Method::POST, "/spawner/v1/labs/ada/spawn").body("{");
    assert_eq!(bob.send(request).await.unwrap().problem().unwrap(), "403 permission_denied");
}

#[tokio::test]
async fn the_message_of_a_policy_reaches_the_user() {
    let service = Service::start(BINARY).await.unwrap();
    let denied = service.user("denied").unwrap().spawn("denied").await.unwrap();
    assert_eq!(denied.problem().unwrap(), "403 permission_denied");
    assert_eq!(denied.json().unwrap()["detail"][0]["msg"], "Ask your local support for access.");
    let by = serde_json::json!({ "decided_by": "policy", "policy": "stagehand", "rule": "authorize.decide" });
    assert_eq!(denied.json().unwrap()["detail"][0]["ctx"], by);
    let hurried = service.user("hurried").unwrap().spawn("hurried").await.unwrap();
    assert_eq!(hurried.problem().unwrap(), "429 retry_later");
    assert_eq!(hurried.header("retry-after"), "7");
    for name in ["denied", "hurried"] {
        assert_eq!(service.hub().unwrap().lab(name).await.unwrap().status, 404, "{name}");
    }
}
