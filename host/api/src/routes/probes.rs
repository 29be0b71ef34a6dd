//! `/healthz`, `/readyz` and `/metrics`, on a listener of their own.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use wasmspawner_core::lifecycle::LabStatus;

use wasmspawner_spawner::{Labs, Pools, SiteEnvironments, Standing};
use wasmspawner_telemetry::Metrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The readiness of a process, to lead or to stand by.
#[derive(Clone)]
struct Readiness {
    labs: Labs,
    /// True while requests can be led to this process; `None` where they come by its readiness alone.
    address_works: Option<watch::Receiver<bool>>,
}

impl Readiness {
    /// True if this process leads, knows the labs, and gets the requests.
    fn leads(&self) -> bool {
        self.labs.is_ready() && self.address_works.as_ref().is_none_or(|works| *works.borrow())
    }

    /// True if this process stands by, gets no requests meanwhile, and would get them if it led.
    fn stands_by(&self) -> bool {
        let works = self.address_works.as_ref().is_some_and(|works| *works.borrow());
        self.labs.standing() == Standing::StandsBy && works
    }
}

/// Builds the router for the listener of probes and metrics. `address_works` says whether requests can be led to this process,
/// where an address is published.
pub fn probes(labs: Labs, address_works: Option<watch::Receiver<bool>>, metrics: Metrics) -> Router {
    let readiness = Readiness { labs, address_works };
    Router::new()
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(ready).with_state(readiness.clone()))
        .route("/metrics", get(numbers).with_state((readiness, metrics)))
}

async fn ready(State(readiness): State<Readiness>) -> (StatusCode, &'static str) {
    if readiness.leads() {
        (StatusCode::OK, "ready\n")
    } else if readiness.stands_by() {
        (StatusCode::OK, "ready: another process leads, and this one would take over from it\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "not ready: another process leads, or the labs are not known yet; the log says which\n",
        )
    }
}

async fn numbers(State((readiness, metrics)): State<(Readiness, Metrics)>) -> Response {
    let labs = &readiness.labs;
    let context = labs.context();
    let statuses = labs.statuses();
    for status in LabStatus::ALL {
        metrics.set_labs(status, statuses.iter().filter(|(_, of_lab)| *of_lab == status).count());
    }
    metrics.set_lifted_labs(labs.count_lifted());
    for (kind, status, count) in labs.count_children() {
        metrics.set_children(kind, status, count);
    }
    SiteEnvironments::new(labs.clone()).measure();
    let (wanted, ready) = Pools::new(labs.clone()).count_workers();
    metrics.set_workers(wanted, ready);
    metrics.set_unreadable_records(labs.count_unreadable());
    metrics.set_policies_missing(context.policies.missing().is_some());
    let history = &context.history;
    metrics.set_history(history.len(), history.is_failing(), history.dropped());
    for (kind, silence) in context.clusters.own().store.silence() {
        metrics.set_watch_silence(kind, silence);
    }
    metrics.set_leads(labs.standing() == Standing::Leads);
    metrics.set_state(readiness.leads(), context.clusters.own().health().is_away());
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
