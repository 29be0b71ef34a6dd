//! The metrics of the service, in the `OpenMetrics` text format.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};
use wasmspawner_core::lifecycle::LabStatus;
use wasmspawner_core::stage::Stage;

use super::outcome::{HubCheck, SpawnOutcome};

/// All metrics of the service. Clones share the numbers; counting never waits.
///
/// No label holds a user's name or an error's text: both would grow without bound.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    spawns: Family<OutcomeLabel, Counter>,
    stages: Family<StageLabel, Histogram, fn() -> Histogram>,
    labs: Family<StatusLabel, Gauge>,
    kubernetes: Family<KubernetesLabels, Counter>,
    policy_calls: Family<PolicyLabels, Counter>,
    policy_seconds: Family<HookLabels, Histogram, fn() -> Histogram>,
    sse_readers: Gauge,
    restarts: Counter,
    panics: Counter,
    orphans: Gauge,
    forgotten: Gauge,
    forgotten_stopped: Counter,
    hub_checks: Family<HubCheckLabel, Counter>,
    history: Gauge,
    watches: Family<WatchLabel, Gauge>,
    http: Family<HttpLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HubCheckLabel {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabel {
    stage: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabel {
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabel {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KubernetesLabels {
    verb: &'static str,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabels {
    policy: String,
    hook: &'static str,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HookLabels {
    policy: String,
    hook: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HttpLabels {
    method: &'static str,
    route: String,
    status: u16,
}

/// Registers metrics while they are made, so that none is counted and never shown.
struct Registration(Registry);

impl Registration {
    fn metric<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }

    /// A metric in seconds, which its name will say.
    fn seconds<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register_with_unit(name, help, Unit::Seconds, metric.clone());
        metric
    }
}

impl Metrics {
    /// Metrics with all numbers at zero.
    pub fn new() -> Self {
        let mut register = Registration(Registry::with_prefix("wasmspawner"));
        let stage_seconds = Family::new_with_constructor(stage_histogram as fn() -> Histogram);
        let policy_seconds = Family::new_with_constructor(call_histogram as fn() -> Histogram);
        Self {
            spawns: register.metric("spawns", "Spawns that ended, by how", Family::default()),
            stages: register.seconds("stage", "Time labs spent in a stage", stage_seconds),
            labs: register.metric("labs", "Labs, by status", Family::default()),
            kubernetes: register.metric(
                "kubernetes_requests",
                "Requests to the Kubernetes API, by verb and class of the answer",
                Family::default(),
            ),
            policy_calls: register.metric(
                "policy_calls",
                "Calls of policy hooks, by result",
                Family::default(),
            ),
            policy_seconds: register.seconds("policy_call", "Time policy hooks took", policy_seconds),
            sse_readers: register.metric("sse_readers", "Open event streams", Gauge::default()),
            restarts: register.metric(
                "lab_restarts",
                "Restarts of running labs' containers, by the kubelet",
                Counter::default(),
            ),
            panics: register.metric(
                "driver_panics",
                "Panics of tasks that work for one lab; the lab is taken over from its record",
                Counter::default(),
            ),
            orphans: register.metric(
                "orphans",
                "Objects with this service's labels that belong to no lab",
                Gauge::default(),
            ),
            forgotten: register.metric(
                "forgotten_labs",
                "Labs that JupyterHub does not know, at the last comparison",
                Gauge::default(),
            ),
            forgotten_stopped: register.metric(
                "forgotten_labs_stopped",
                "Labs that were stopped because JupyterHub did not know them for long enough",
                Counter::default(),
            ),
            hub_checks: register.metric(
                "hub_checks",
                "Comparisons of the labs with JupyterHub's servers, by what came of them",
                Family::default(),
            ),
            history: register.metric(
                "history_operations",
                "Records of operations in the history, at most limits.history_operations",
                Gauge::default(),
            ),
            watches: register.seconds(
                "watch_silence",
                "Time since a watch of the Kubernetes API last brought something",
                Family::default(),
            ),
            http: register.metric(
                "http_requests",
                "Requests answered, by route and status",
                Family::default(),
            ),
            registry: Arc::new(register.0),
        }
    }

    /// Counts restarts of containers of running labs.
    pub fn labs_restarted(&self, count: u32) {
        self.restarts.inc_by(count.into());
    }

    /// Counts a panic of a task that works for one lab.
    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// Sets the time since the watch of `kind` brought something.
    pub fn set_watch_silence(&self, kind: &'static str, silence: Duration) {
        let seconds = i64::try_from(silence.as_secs()).unwrap_or(i64::MAX);
        self.watches.get_or_create(&WatchLabel { kind }).set(seconds);
    }

    /// Sets the number of objects that belong to no lab.
    pub fn set_orphans(&self, count: usize) {
        self.orphans.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the number of labs that the Hub does not know.
    pub fn set_forgotten(&self, count: usize) {
        self.forgotten.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a lab that is stopped because the Hub does not know it.
    pub fn forgotten_stopped(&self) {
        self.forgotten_stopped.inc();
    }

    /// Counts a comparison of the labs with the Hub's servers, or an attempt at one.
    pub fn hub_checked(&self, outcome: HubCheck) {
        self.hub_checks.get_or_create(&HubCheckLabel { outcome: outcome.as_str() }).inc();
    }

    /// Sets the number of records of operations that are kept.
    pub fn set_history(&self, count: usize) {
        self.history.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a spawn that has ended.
    pub fn spawn_ended(&self, outcome: SpawnOutcome) {
        self.spawns.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }).inc();
    }

    /// Observes the time that a lab spent in a stage.
    pub fn stage_left(&self, stage: Stage, after: Duration) {
        self.stages.get_or_create(&StageLabel { stage: stage.as_str() }).observe(after.as_secs_f64());
    }

    /// Sets the number of labs that have this status.
    pub fn set_labs(&self, status: LabStatus, count: usize) {
        let status = match status {
            LabStatus::Starting => "starting",
            LabStatus::Running => "running",
            LabStatus::Terminating => "terminating",
            LabStatus::Failed => "failed",
        };
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.labs.get_or_create(&StatusLabel { status }).set(count);
    }

    /// Counts a request to the Kubernetes API. Without a status, there was no answer.
    pub fn kubernetes_request(&self, verb: &'static str, status: Option<u16>) {
        let code = match status {
            Some(100..=199) => "1xx",
            Some(200..=299) => "2xx",
            Some(300..=399) => "3xx",
            Some(400..=499) => "4xx",
            Some(_) => "5xx",
            None => "none",
        };
        self.kubernetes.get_or_create(&KubernetesLabels { verb, code }).inc();
    }

    /// Counts and times a call of a hook. `kind` is `ok` or the kind of the error, never an error's text.
    pub fn policy_called(&self, policy: &str, hook: &'static str, kind: &'static str, took: Duration) {
        let labels = PolicyLabels { policy: policy.to_owned(), hook, kind };
        self.policy_calls.get_or_create(&labels).inc();
        let labels = HookLabels { policy: policy.to_owned(), hook };
        self.policy_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts a reader of an event stream until the returned value is dropped.
    pub fn sse_reader(&self) -> SseReader {
        self.sse_readers.inc();
        SseReader(self.sse_readers.clone())
    }

    /// Counts a request that was answered. `route` is the router's pattern, never the path.
    pub fn http_request(&self, method: &http::Method, route: &str, status: StatusCode) {
        let labels =
            HttpLabels { method: method_label(method), route: route.to_owned(), status: status.as_u16() };
        self.http.get_or_create(&labels).inc();
    }

    /// All metrics as text, for a Prometheus server.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut body = String::with_capacity(4096);
        text::encode(&mut body, &self.registry)?;
        Ok(body)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// One open event stream, counted until it is dropped.
#[derive(Debug)]
pub struct SseReader(Gauge);

impl Drop for SseReader {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A method as a label. Clients can invent methods, and must not create labels with them.
fn method_label(method: &http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

fn stage_histogram() -> Histogram {
    Histogram::new([0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0])
}

fn call_histogram() -> Histogram {
    Histogram::new([25e-6, 50e-6, 100e-6, 250e-6, 1e-3, 5e-3, 25e-3, 100e-3, 200e-3, 1.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_in_the_exported_text() {
        let metrics = Metrics::new();
        metrics.spawn_ended(SpawnOutcome::Complete);
        metrics.stage_left(Stage::Pulling, Duration::from_secs(3));
        metrics.kubernetes_request("patch", Some(409));
        metrics.policy_called("rubin", "build-pod", "ok", Duration::from_micros(30));
        metrics.http_request(&"BREW".parse().unwrap(), "/labs", StatusCode::METHOD_NOT_ALLOWED);
        metrics.set_labs(LabStatus::Running, 2);
        let reader = metrics.sse_reader();
        let text = metrics.encode().unwrap();
        for line in [
            r#"wasmspawner_spawns_total{outcome="complete"} 1"#,
            r#"wasmspawner_stage_seconds_bucket{le="5.0",stage="Pulling"} 1"#,
            r#"wasmspawner_kubernetes_requests_total{verb="patch",code="4xx"} 1"#,
            r#"wasmspawner_policy_calls_total{policy="rubin",hook="build-pod",kind="ok"} 1"#,
            r#"wasmspawner_http_requests_total{method="other",route="/labs",status="405"} 1"#,
            r#"wasmspawner_labs{status="running"} 2"#,
            "wasmspawner_sse_readers 1",
            "# EOF",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        drop(reader);
        assert!(metrics.encode().unwrap().contains("wasmspawner_sse_readers 0"));
    }
}
