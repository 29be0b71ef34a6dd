//! A fault in the cluster ends a spawn early, with a reason.

use std::time::{Duration, Instant};

use wasmspawner_tests::service::Service;

use crate::BINARY;

/// Far below the time limit of a spawn, but long enough for a busy machine (usually two seconds are enough).
const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn faults_end_a_spawn_soon_and_say_why() {
    let unforgiving =
        |config: &mut serde_json::Value| config["limits"] = serde_json::json!({ "restarts": 0 });
    let service = Service::start_with(BINARY, unforgiving).await.unwrap();
    let ends = ["pull-failure", "invalid-image", "config-error", "crash-loop", "oom", "exit", "evicted"];
    let spawns = ends.map(|fault| {
        let service = &service;
        async move {
            let name = format!("fault.{fault}");
            let user = service.user(&name).unwrap();
            let began = Instant::now();
            let events = user.spawn_to_end(&name).await.unwrap();
            assert!(began.elapsed() < SOON, "{fault} took {:?}", began.elapsed());
            let last = events.last().unwrap();
            assert_eq!(last.kind, "failed", "{fault}: {events:#?}");
            assert!(!last.data.is_empty(), "{fault}: {events:#?}");
            let lab = user.lab(&name).await.unwrap().json().unwrap();
            assert_eq!(lab["status"], "failed", "{fault}: {lab:#}");
            format!("{fault}: {}: {}", lab["reason"].as_str().unwrap(), lab["message"].as_str().unwrap())
        }
    });
    let failures = futures::future::join_all(spawns).await;
    insta::assert_snapshot!(failures.join("\n"));
}

#[tokio::test]
async fn a_spawn_that_takes_too_long_fails_and_leaves_no_objects() {
    let hasty = |config: &mut serde_json::Value| config["limits"] = serde_json::json!({ "spawn": "2s" });
    let service = Service::start_with(BINARY, hasty).await.unwrap();
    let user = service.user("fault.not-ready").unwrap();
    let events = user.spawn_to_end("fault.not-ready").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    let lab = user.lab("fault.not-ready").await.unwrap().json().unwrap();
    assert_eq!(lab["reason"], "SpawnTimeout", "{lab:#}");
}
