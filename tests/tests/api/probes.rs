//! `/healthz`, `/readyz` and `/metrics` on their own address.

use std::time::Duration;

use serde_json::Value;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::some_within;

use crate::BINARY;

#[tokio::test]
async fn the_probes_answer_on_their_own_listener_only() {
    let service = Service::start(BINARY).await.unwrap();
    for (path, expected) in
        [("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/spawner/v1/labs", 404)]
    {
        assert_eq!(service.probes().get(path).await.unwrap().status, expected, "{path}");
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(service.stranger().get(path).await.unwrap().status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_metrics_count_spawns_requests_and_policy_calls() {
    // Each stage is long enough to be observed.
    let slow = |config: &mut Value| config["embedded"]["simulated"]["ready"] = "2s".into();
    let service = Service::start_with(BINARY, slow).await.unwrap();
    service.user("grace").unwrap().spawn_to_end("grace").await.unwrap();
    let failing = "fault.pull-failure";
    service.user(failing).unwrap().spawn_to_end(failing).await.unwrap();
    let metrics = service.probes().get("/metrics").await.unwrap();
    assert!(metrics.header("content-type").starts_with("application/openmetrics-text"));
    let lines = [
        r#"wasmspawner_spawns_total{outcome="complete"} 1"#,
        r#"wasmspawner_spawns_total{outcome="failed"} 1"#,
        r#"wasmspawner_labs{status="running"} 1"#,
        r#"wasmspawner_stage_seconds_count{stage="Starting"}"#,
        r#"wasmspawner_http_requests_total{method="POST",route="/spawner/v1/labs/{username}/spawn",status="303"} 2"#,
        r#"wasmspawner_policy_calls_total{policy="stagehand",hook="build-pod.customize",kind="ok"} 2"#,
        r#"wasmspawner_kubernetes_requests_total{verb="patch",code="2xx"}"#,
        "wasmspawner_sse_readers 0",
        "wasmspawner_history_operations 2",
        "# EOF",
    ];
    // The reader of a stream ends a moment after its last event.
    let mut metrics = String::new();
    let counted = some_within(Duration::from_mins(1), async || {
        metrics = service.probes().get("/metrics").await.unwrap().body;
        lines.iter().all(|line| metrics.contains(line)).then_some(())
    })
    .await;
    assert!(counted.is_some(), "not all of {lines:#?} are in\n{metrics}");
    assert!(!metrics.contains("grace"), "a user's name is a label");
}
