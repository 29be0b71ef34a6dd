//! A policy that misbehaves fails only the request that called it, and the error names it. No other tests run beside these:
//! endless loops get what CPU is left, and without any nobody knows that they are loops.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");

#[tokio::test]
async fn a_hostile_policy_fails_its_own_request_only() {
    let service = Service::start(BINARY).await.unwrap();
    let victims = ["loop", "memory", "panic", "huge", "many", "internal"].map(|act| {
        let service = &service;
        async move {
            let name = format!("act.{act}");
            let user = service.user(&name).unwrap();
            let message = match user.spawn(&name).await.unwrap() {
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
        }
    });
    let ada = service.user("ada").unwrap();
    let (events, _) = futures::join!(ada.spawn_to_end("ada"), futures::future::join_all(victims));
    assert_eq!(events.unwrap().last().unwrap().kind, "complete");
}

/// What no cluster would accept is refused before it gets there, and the message says it in a few words.
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
    let service = Service::start(BINARY).await.unwrap();
    let user = service.user("trapped").unwrap();
    let answer = until_some(async || {
        let answer = user.spawn("trapped").await.unwrap();
        // A busy machine may have no CPU for the loop, and then nobody knows that it is one.
        (answer.problem().unwrap() != "503 policy_unavailable").then_some(answer)
    })
    .await;
    assert_eq!(answer.problem().unwrap(), "500 policy_failed");
    assert!(answer.body.contains("stagehand"), "{}", answer.body);
    assert_eq!(service.hub().unwrap().lab("trapped").await.unwrap().status, 404);
}
