//! Traces that are sent to a collector (`telemetry.otlp`).

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use http::Method;
use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::collector::{FakeCollector, Span};
use wasmspawner_tests::hub::{FakeHub, TOKEN};
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

async fn traced(collector: &FakeCollector, ratio: f64) -> Service {
    traced_within(collector, ratio, "1m").await
}

/// The same, with a time limit for the collector's answers.
async fn traced_within(collector: &FakeCollector, ratio: f64, timeout: &str) -> Service {
    let otlp = json!({ "endpoint": collector.endpoint(), "sample_ratio": ratio, "timeout": timeout });
    Service::start_with(BINARY, |config| config["telemetry"]["otlp"] = otlp).await.unwrap()
}

/// Waits for a span.
async fn span(collector: &FakeCollector, wanted: impl Fn(&Span) -> bool) -> Span {
    until_some(async || collector.spans().into_iter().find(|span| wanted(span))).await
}

const SPAWN: &str = "POST /spawner/v1/labs/{username}/spawn";

#[tokio::test]
async fn a_spawn_is_a_tree_of_spans_in_the_trace_of_its_caller() {
    let collector = FakeCollector::start().await.unwrap();
    let service = traced(&collector, 0.0).await;
    let ada = service.user("ada").unwrap();
    let (trace, caller) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let request = ada.request(Method::POST, &format!("{PREFIX}/labs/ada/spawn")).json(&json!({}));
    let answer = request.header("traceparent", format!("00-{trace}-{caller}-01")).send().await.unwrap();
    assert_eq!(answer.status(), 303);
    ada.events("ada").await.unwrap().to_end().await.unwrap();

    let operation = span(&collector, |span| span.name == "spawn").await;
    let request = span(&collector, |span| span.name == SPAWN).await;
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.trace == trace), "nothing else is recorded: {spans:#?}");
    assert_eq!((request.parent.as_str(), &request.attributes["enduser.id"]), (caller, &"ada".to_owned()));
    assert_eq!(request.attributes["http.response.status_code"], "303");
    assert_eq!(operation.parent, request.id);
    assert_eq!(operation.attributes["user.name"], "ada");
    assert_eq!(operation.attributes["wasmspawner.outcome"], "complete");
    for (name, parent) in [
        ("create spawns", &request),
        ("policy build-pod.customize", &operation),
        ("create namespaces", &operation),
        ("create pods", &operation),
    ] {
        let found = spans.iter().find(|span| span.name == name);
        assert_eq!(found.map(|span| &span.parent), Some(&parent.id), "{name} in {spans:#?}");
    }
    assert!(spans.iter().all(|span| !span.failed), "{spans:#?}");
    let metrics = service.probes().get("/metrics").await.unwrap().body;
    assert!(metrics.contains(&format!("# {{trace_id=\"{trace}\"}}")), "no exemplar in\n{metrics}");
}

#[tokio::test]
async fn a_failed_spawn_and_its_reason_are_in_the_trace_and_no_secret_is() {
    let collector = FakeCollector::start().await.unwrap();
    let headers = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(headers.path(), "Authorization: Bearer secret-of-the-collector\n").unwrap();
    std::fs::set_permissions(headers.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    let service = Service::start_with(BINARY, |config| {
        config["telemetry"]["otlp"] =
            json!({ "endpoint": collector.endpoint(), "headers_file": headers.path() });
    })
    .await
    .unwrap();
    let name = "fault.pull-failure";
    let user = service.user(name).unwrap();
    let body = json!({
        "options": { "note": "secret-in-an-option" },
        "env": { "API_TOKEN": "secret-in-the-environment" },
    });
    let path = format!("{PREFIX}/labs/{name}/spawn?x=secret-in-a-query");
    let request = user.request(Method::POST, &path).header("tracestate", "a=secret-in-a-state").json(&body);
    assert_eq!(request.send().await.unwrap().status(), 303);
    user.events(name).await.unwrap().to_end().await.unwrap();
    service.stranger().with_token("secret-of-a-stranger").lab(name).await.unwrap();

    let operation = span(&collector, |span| span.name == "spawn").await;
    assert!(operation.failed);
    assert_eq!(operation.attributes["wasmspawner.outcome"], "failed");
    assert!(!operation.attributes["error.type"].is_empty());
    let refused =
        |span: &Span| span.attributes.get("http.response.status_code").is_some_and(|status| status == "401");
    assert!(!span(&collector, refused).await.attributes.contains_key("enduser.id"));
    assert!(collector.has_received(name), "the search works");
    for secret in ["secret-", "ExecNotebook"] {
        assert!(!collector.has_received(secret), "{secret} is in a span");
    }
    assert_eq!(collector.headers()["authorization"], "Bearer secret-of-the-collector");
    assert!(!service.log().contains("secret-of-the-collector"));
}

#[tokio::test]
async fn without_the_section_nothing_is_sent_and_traceparent_is_ignored() {
    let collector = FakeCollector::start().await.unwrap();
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    let metrics = service.probes().get("/metrics").await.unwrap().body;
    assert!(metrics.contains(r#"wasmspawner_exported_spans_total{outcome="sent"} 0"#), "{metrics}");
    assert!(!metrics.contains("trace_id"), "{metrics}");
    assert_eq!(collector.requests(), 0);
}

#[tokio::test]
async fn a_collector_that_never_answers_costs_neither_time_nor_memory() {
    let collector = FakeCollector::silent().await.unwrap();
    let mut service = traced_within(&collector, 1.0, "1s").await;
    let ada = service.user("ada").unwrap();
    let admin = service.admin().unwrap();
    let request = async || assert_eq!(admin.lab("nobody").await.unwrap().status, 404);
    until_some(async || {
        request().await;
        (collector.requests() > 0).then_some(())
    })
    .await;
    let before = service.usage().unwrap().peak_kib;
    for _ in 0..12_000 {
        request().await;
    }
    let begun = Instant::now();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert!(begun.elapsed() < Duration::from_secs(20), "the spawn took {:?}", begun.elapsed());
    let grown = service.usage().unwrap().peak_kib - before;
    assert!(grown < 32 * 1024, "12 000 requests have used {grown} KiB");
    let begun = Instant::now();
    assert!(service.end().unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(20), "the end took {:?}", begun.elapsed());
    assert!(service.log().contains("does not accept traces"), "{}", service.log());
}

#[tokio::test]
async fn a_headers_file_that_others_may_read_prevents_the_start() {
    let headers = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(headers.path(), "Authorization: Bearer secret-of-the-collector\n").unwrap();
    std::fs::set_permissions(headers.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let service = Service::prepare(BINARY, |config: &mut Value| {
        config["telemetry"]["otlp"] =
            json!({ "endpoint": "http://127.0.0.1:9", "headers_file": headers.path() });
    });
    let output = service.unwrap().run_to_end().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("mode 0644"), "{text}");
    assert!(!text.contains("secret-of-the-collector"), "{text}");
}

#[tokio::test]
async fn jupyterhub_is_told_the_trace_of_the_caller() {
    let collector = FakeCollector::start().await.unwrap();
    let hub = FakeHub::start(&[]).await.unwrap();
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), TOKEN).unwrap();
    let service = Service::start_with(BINARY, |config| {
        config["telemetry"]["otlp"] = json!({ "endpoint": collector.endpoint(), "sample_ratio": 0.0 });
        config["hub"] = json!({ "api_url": hub.api_url(), "token_file": token.path() });
    })
    .await
    .unwrap();
    let (trace, caller) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let request = service.hub().unwrap().request(Method::GET, &format!("{PREFIX}/forgotten"));
    let answer = request.header("traceparent", format!("00-{trace}-{caller}-01")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let asked = span(&collector, |span| span.name.contains("users")).await;
    let told = format!("00-{trace}-{}-01", asked.id);
    assert!(hub.traces().contains(&told), "{told} is not in {:?}", hub.traces());
}

#[tokio::test]
async fn spans_that_are_dropped_are_counted() {
    let collector = FakeCollector::silent().await.unwrap();
    let otlp = json!({ "endpoint": collector.endpoint(), "timeout": "1m" });
    let service = Service::start_with(BINARY, |config| config["telemetry"]["otlp"] = otlp).await.unwrap();
    let admin = service.admin().unwrap();
    let dropped = async || {
        assert_eq!(admin.lab("nobody").await.unwrap().status, 404);
        let metrics = service.probes().get("/metrics").await.unwrap().body;
        let line =
            metrics.lines().find(|line| line.contains(r#"exported_spans_total{outcome="dropped"}"#)).unwrap();
        line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()
    };
    assert_eq!(dropped().await, 0);
    // At most 4096 spans wait, and the collector accepts none. On a busy machine its time limit, the longest possible
    // one, can pass meanwhile. Some spans are then given up, and there is room for as many others.
    let mut requests = 0;
    while dropped().await == 0 {
        assert!(requests < 4 * 4096, "none of {requests} spans was dropped");
        for _ in 0..64 {
            try_join_all((0..8).map(|_| admin.lab("nobody"))).await.unwrap();
        }
        requests += 64 * 8;
    }
}
