//! `/healthz`, `/readyz` and `/metrics`, on a listener of their own.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::runtime::Handle;
use tokio::time::Instant;

use wasmspawner_core::lifecycle::LabStatus;

use wasmspawner_spawner::{Labs, Pools, SiteEnvironments, Standing};
use wasmspawner_telemetry::Metrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Builds the router for the listener of probes and metrics.
pub fn probes(labs: Labs, metrics: Metrics) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(ready).with_state(labs.clone()))
        .route("/metrics", get(numbers).with_state((labs, metrics)))
}

/// A process that stands by is ready, too, where requests go to the one that leads whatever the probes say.
async fn ready(State(labs): State<Labs>) -> (StatusCode, &'static str) {
    let is_led_to = labs.context().config.current().kubernetes.endpoint_slice.is_some();
    if labs.is_ready() {
        (StatusCode::OK, "ready\n")
    } else if labs.standing() == Standing::StandsBy && is_led_to {
        (StatusCode::OK, "ready: another process leads, and this one takes over from it\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "not ready: another process leads, or the labs are not known yet; the log says which\n",
        )
    }
}

async fn numbers(State((labs, metrics)): State<(Labs, Metrics)>) -> Response {
    let context = labs.context();
    let statuses = labs.statuses();
    for status in LabStatus::ALL {
        metrics.set_labs(status, statuses.iter().filter(|(_, of_lab)| *of_lab == status).count());
    }
    for (kind, status, count) in labs.count_children() {
        metrics.set_children(kind, status, count);
    }
    SiteEnvironments::new(labs.clone()).measure();
    let (wanted, ready) = Pools::new(labs.clone()).count_workers();
    metrics.set_workers(wanted, ready);
    metrics.set_unreadable_records(labs.count_unreadable());
    metrics.set_policies_missing(context.policies.missing().is_some());
    metrics.set_history(context.history.len());
    for (kind, silence) in context.clusters.own().store.silence() {
        metrics.set_watch_silence(kind, silence);
    }
    metrics.set_leads(labs.standing() == Standing::Leads);
    metrics.set_state(labs.is_ready(), context.clusters.own().health().is_away());
    let most = context.config.current().limits.concurrent_spawns;
    metrics.set_spawns_in_progress(most.saturating_sub(context.spawn_slots.available_permits()), most);
    metrics.set_load(Handle::current().metrics().num_alive_tasks(), event_loop_delay().await);
    match metrics.encode() {
        Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Measures the time that a new task waits for a free thread. It grows if something blocks the threads.
async fn event_loop_delay() -> Duration {
    let asked = Instant::now();
    tokio::spawn(async move { asked.elapsed() }).await.unwrap_or_default()
}
