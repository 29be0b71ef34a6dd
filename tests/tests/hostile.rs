//! A policy that misbehaves fails only the request that called it, and the error names it. No other tests run beside
//! these: endless loops get only the CPU that is left, and without any CPU they cannot be recognized as loops.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;
use wasmspawner_tests::api::{Answer, Client};
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");

/// A service whose policy may compute for 20 ms. The policy has a second for that, and even a busy machine gives it
/// that much CPU.
async fn with_little_time() -> Service {
    let limits = json!({ "deadline_ms": 20 });
    Service::start_with(BINARY, |config| config["policies"][0]["limits"] = limits).await.unwrap()
}

/// The answer to a spawn, requested again until this machine has CPU for its policies.
async fn spawn(user: &Client, lab: &str) -> Answer {
    until_some(async || {
        let answer = user.spawn(lab).await.unwrap();
        let no_cpu = answer.status == 503 && answer.problem().unwrap() == "503 policy_unavailable";
        (!no_cpu).then_some(answer)
    })
    .await
}

#[tokio::test]
async fn an_endless_policy_fails_its_own_request_only() {
    only_victims_fail(&with_little_time().await, ["loop"]).await;
}

#[tokio::test]
async fn a_hostile_policy_fails_its_own_request_only() {
    let service = Service::start(BINARY).await.unwrap();
    only_victims_fail(&service, ["memory", "panic", "huge", "many", "internal"]).await;
}

async fn only_victims_fail<const N: usize>(service: &Service, acts: [&str; N]) {
    let victims = acts.map(|act| async move {
        let name = format!("act.{act}");
        let user = service.user(&name).unwrap();
        let message = match spawn(&user, &name).await {
            answer if answer.status == 303 => {
                let events = user.events(&name).await.unwrap().to_end().await.unwrap();
                assert_eq!(events.last().unwrap().kind, "failed", "{act}: {events:#?}");
                let lab = user.lab(&name).await.unwrap().json().unwrap();
                lab["message"].as_str().unwrap().to_owned()
            }
            answer => {
                assert_eq!(answer.problem().unwrap(), "500 policy_failed", "{act}");
                answer.body
            }
        };
        assert!(message.contains("stagehand"), "{act} does not name the policy: {message}");
        assert!(!message.contains("a secret of the site"), "{act}: {message}");
    });
    let ada = service.user("ada").unwrap();
    let (answer, _) = futures::join!(spawn(&ada, "ada"), futures::future::join_all(victims));
    assert_eq!(answer.status, 303, "{answer:?}");
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete");
}

/// A value that no cluster would accept is refused before it reaches one, with a short message.
#[tokio::test]
async fn strange_texts_in_a_pod_are_refused_by_field() {
    let service = Service::start(BINARY).await.unwrap();
    for (act, field) in [
        ("nul", "env[0].value"),
        ("nul-in-path", "working_dir"),
        ("reordered", "env[0].name"),
        ("long", "env[0].value"),
        ("long-path", "working_dir"),
        ("long-image", "image"),
    ] {
        let name = format!("act.{act}");
        let user = service.user(&name).unwrap();
        let answer = user.spawn(&name).await.unwrap();
        assert_eq!(answer.status, 303, "{act}: {}", answer.body);
        let events = user.events(&name).await.unwrap().to_end().await.unwrap();
        assert_eq!(events.last().unwrap().kind, "failed", "{act}");
        let lab = user.lab(&name).await.unwrap().json().unwrap();
        let message = lab["message"].as_str().unwrap();
        assert!(message.len() < 3000, "{act}: {} bytes", message.len());
        assert!(message.contains("stagehand") && message.contains(field), "{act}: {message}");
        let strange = |c: &char| c.is_control() || *c == '\u{202e}';
        assert_eq!(message.chars().find(strange), None, "{act}: {message:?}");
        assert!(lab.to_string().len() < 20_000, "{act}");
    }
    assert!(service.log().len() < 200_000, "{} bytes", service.log().len());
}

#[tokio::test]
async fn a_message_of_a_policy_is_short_and_shows_what_it_says() {
    let service = Service::start(BINARY).await.unwrap();
    let answer = service.user("denied-strangely").unwrap().spawn("denied-strangely").await.unwrap();
    assert_eq!(answer.problem().unwrap(), "403 permission_denied");
    let body = answer.json().unwrap();
    let message = body["detail"][0]["msg"].as_str().unwrap();
    assert!(message.starts_with("No ! [2Jxxx") && message.ends_with("x ..."), "{message}");
    assert!(message.len() < 3000 && service.log().len() < 100_000, "{} bytes", message.len());
}

#[tokio::test]
async fn an_endless_loop_in_authorize_is_an_error() {
    let service = with_little_time().await;
    let answer = spawn(&service.user("trapped").unwrap(), "trapped").await;
    assert_eq!(answer.problem().unwrap(), "500 policy_failed");
    assert!(answer.body.contains("stagehand"), "{}", answer.body);
    assert_eq!(service.hub().unwrap().lab("trapped").await.unwrap().status, 404);
}
