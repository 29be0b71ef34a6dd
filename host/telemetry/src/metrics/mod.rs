//! The metrics of the service, in the `OpenMetrics` text format.

mod count;
mod environments;
mod labels;
mod prepulls;
mod process;
mod registration;
mod reloads;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use wasmspawner_core::lifecycle::Blame;

use super::outcome::{HubCheck, Prepull, Reload, SpawnOutcome};
pub use count::SseReader;
use environments::EnvironmentMetrics;
use labels::{
    BlameLabel, ChildLabels, ChildOutcomeLabels, HookLabels, HttpLabels, KubernetesLabels, OutcomeLabel,
    PolicyLabels, RouteLabels, StageLabel, StatusLabel, TraceLabel, VerbLabel, VersionLabel, WatchLabel,
    WorkersLabel,
};
use prepulls::PrepullMetrics;
use process::Process;
use registration::Registration;
use reloads::ReloadMetrics;

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;
type TracedHistogram = HistogramWithExemplars<TraceLabel>;
type TracedHistograms<L> = Family<L, TracedHistogram, fn() -> TracedHistogram>;

/// All metrics of the service. Clones share the values. Updates never wait.
///
/// No label contains the name of a user or the text of an error: both would grow without bound.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// The metrics of the process. Their names have no prefix.
    process: Arc<Registry>,
    ready: Gauge,
    leads: Gauge,
    spawns: Family<OutcomeLabel, Counter>,
    spawn_seconds: TracedHistograms<OutcomeLabel>,
    spawn_failures: Family<BlameLabel, Counter>,
    in_progress: Gauge,
    in_progress_limit: Gauge,
    stages: Histograms<StageLabel>,
    labs: Family<StatusLabel, Gauge>,
    lifted_labs: Gauge,
    children: Family<ChildLabels, Gauge>,
    environments: EnvironmentMetrics,
    child_starts: Family<ChildOutcomeLabels, Counter>,
    workers: Family<WorkersLabel, Gauge>,
    restarts: Counter,
    panics: Counter,
    orphans: Gauge,
    unreadable_records: Gauge,
    forgotten: Gauge,
    forgotten_stopped: Counter,
    hub_checks: Family<OutcomeLabel, Counter>,
    history: Gauge,
    history_failing: Gauge,
    history_dropped: Counter,
    prepulls: PrepullMetrics,
    kubernetes: Family<KubernetesLabels, Counter>,
    kubernetes_seconds: Histograms<VerbLabel>,
    kubernetes_queue: Histogram,
    kubernetes_away: Gauge,
    watches: Family<WatchLabel, Gauge>,
    policy_calls: Family<PolicyLabels, Counter>,
    policy_seconds: Histograms<HookLabels>,
    policy_comparisons: Family<PolicyLabels, Counter>,
    reloads: ReloadMetrics,
    http: Family<HttpLabels, Counter>,
    http_seconds: TracedHistograms<RouteLabels>,
    sse_readers: Gauge,
    spans: Family<OutcomeLabel, Counter>,
    tasks: Gauge,
    event_loop_delay: Gauge<f64, AtomicU64>,
}

impl Metrics {
    /// Creates the metrics, with all values at zero.
    pub fn new() -> Self {
        let mut register = Registration(Registry::with_prefix("wasmspawner"));
        let version = VersionLabel { version: env!("CARGO_PKG_VERSION") };
        register.0.register("build", "The version of the service", Info::new(version));
        let stage_seconds = Family::new_with_constructor(minutes as fn() -> Histogram);
        let spawn_seconds = Family::new_with_constructor(traced_minutes as fn() -> TracedHistogram);
        let policy_seconds = Family::new_with_constructor(microseconds as fn() -> Histogram);
        let kubernetes_seconds = Family::new_with_constructor(milliseconds as fn() -> Histogram);
        let http_seconds = Family::new_with_constructor(traced_milliseconds as fn() -> TracedHistogram);
        let mut process = Registry::default();
        process.register_collector(Box::new(Process::started_now()));
        let metrics = Self {
            ready: register.plain("ready", "1 while this process leads, knows all labs and answers requests"),
            leads: register.plain("leads", "1 if this process leads its installation, 0 if it stands by"),
            spawns: register.plain("spawns", "Spawns that ended, by how"),
            spawn_seconds: register.seconds("spawn", "Time from a spawn's begin to its end", spawn_seconds),
            spawn_failures: register
                .plain("spawn_failures", "Spawns that failed through no fault of the user, by whose"),
            in_progress: register.plain("spawns_in_progress", "Spawns that are under way"),
            in_progress_limit: register.plain(
                "spawns_in_progress_limit",
                "limits.concurrent_spawns; with as many, further ones are refused",
            ),
            stages: register.seconds("stage", "Time labs spent in a stage", stage_seconds),
            labs: register.plain("labs", "Labs, by status"),
            lifted_labs: register.plain(
                "lifted_labs",
                "Labs of administrators with less than the security baseline (lab.administrators)",
            ),
            environments: EnvironmentMetrics::new(&mut register),
            children: register.plain("children", "Kernels and Dask pools, by status"),
            child_starts: register.plain("child_starts", "Starts of kernels and Dask pools that ended"),
            workers: register.plain("dask_workers", "Workers of all Dask pools: wanted, and connected"),
            restarts: register.plain("lab_restarts", "Restarts of running labs' containers, by the kubelet"),
            panics: register.plain(
                "driver_panics",
                "Panics of tasks that work for one lab; the lab is taken over from its record",
            ),
            orphans: register.plain("orphans", "Objects with this service's labels that belong to no lab"),
            unreadable_records: register
                .plain("unreadable_records", "Records of labs that this version of the service cannot read"),
            forgotten: register
                .plain("forgotten_labs", "Labs that JupyterHub does not know, at the last comparison"),
            forgotten_stopped: register.plain(
                "forgotten_labs_stopped",
                "Labs that were stopped because JupyterHub did not know them for long enough",
            ),
            hub_checks: register.plain(
                "hub_checks",
                "Comparisons of the labs with JupyterHub's servers, by what came of them",
            ),
            history: register.plain(
                "history_operations",
                "Records of operations in the history, at most limits.history_operations",
            ),
            history_failing: register
                .plain("history_failing", "1 while the history cannot be written to its store, 0 otherwise"),
            history_dropped: register.plain(
                "history_dropped",
                "Changes of the history that were given up because more than history.nats.queue waited",
            ),
            prepulls: PrepullMetrics::new(&mut register, minutes()),
            kubernetes: register.plain(
                "kubernetes_requests",
                "Requests to the Kubernetes API, by verb and class of the answer",
            ),
            kubernetes_seconds: register.seconds(
                "kubernetes_request",
                "Time requests to the Kubernetes API took with their wait for a turn, without watches",
                kubernetes_seconds,
            ),
            kubernetes_queue: register.seconds(
                "kubernetes_queue",
                "Time requests waited for their turn under kubernetes.requests_per_second",
                milliseconds(),
            ),
            kubernetes_away: register.plain("kubernetes_away", "1 while the Kubernetes API does not answer"),
            watches: register.seconds(
                "watch_silence",
                "Time since a watch of the Kubernetes API last brought something",
                Family::default(),
            ),
            policy_calls: register.plain("policy_calls", "Calls of policy hooks, by result"),
            policy_comparisons: register.plain("policy_comparisons", "Answers of candidates, by result"),
            policy_seconds: register.seconds("policy_call", "Time policy hooks took", policy_seconds),
            reloads: ReloadMetrics::new(&mut register),
            http: register.plain("http_requests", "Requests answered, by route and status"),
            http_seconds: register.seconds("http_request", "Time until requests were answered", http_seconds),
            sse_readers: register.plain("sse_readers", "Open event streams"),
            spans: register.plain("exported_spans", "Spans of traces, by what became of them"),
            tasks: register.plain("tasks", "Tasks of the service; each lab has at least one"),
            event_loop_delay: register.seconds(
                "event_loop_delay",
                "Time until a new task ran, at this scrape",
                Gauge::default(),
            ),
            registry: Arc::new(register.0),
            process: Arc::new(process),
        };
        metrics.begin_at_zero();
        metrics
    }

    /// Creates the counters that alerts use before their first event. Prometheus does not see a counter that first
    /// appears with the value 1 as an increase.
    fn begin_at_zero(&self) {
        for blame in [Blame::Policy, Blame::Cluster, Blame::Service] {
            drop(self.spawns.get_or_create(&OutcomeLabel { outcome: SpawnOutcome::Failed(blame).as_str() }));
            drop(self.spawn_failures.get_or_create(&BlameLabel { blame: blame_label(blame) }));
        }
        for outcome in [SpawnOutcome::Complete, SpawnOutcome::Denied, SpawnOutcome::Cancelled] {
            drop(self.spawns.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }));
        }
        for outcome in HubCheck::ALL {
            drop(self.hub_checks.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }));
        }
        for outcome in Reload::ALL {
            drop(self.reloads.reloads.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }));
        }
        for outcome in Prepull::ALL {
            drop(self.prepulls.ended.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }));
        }
        for outcome in ["sent", "failed", "dropped"] {
            drop(self.spans.get_or_create(&OutcomeLabel { outcome }));
        }
        for verb in ["watch", "read", "create", "update", "patch", "delete"] {
            for code in ["2xx", "4xx", "5xx", "none"] {
                drop(self.kubernetes.get_or_create(&KubernetesLabels { verb, code }));
            }
        }
    }

    /// Encodes all metrics as text, for a Prometheus server.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut body = String::with_capacity(16 << 10);
        text::encode_registry(&mut body, &self.registry)?;
        text::encode_registry(&mut body, &self.process)?;
        text::encode_eof(&mut body)?;
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

fn blame_label(blame: Blame) -> &'static str {
    match blame {
        Blame::User => "user",
        Blame::Policy => "policy",
        Blame::Cluster => "cluster",
        Blame::Service => "service",
    }
}

/// Upper bounds in seconds, for what takes seconds or minutes.
const UP_TO_MINUTES: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
/// Upper bounds in seconds, for what takes milliseconds.
const UP_TO_SECONDS: [f64; 10] = [1e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1.0, 5.0, 15.0];

/// Creates a histogram for durations of seconds or minutes.
fn minutes() -> Histogram {
    Histogram::new(UP_TO_MINUTES)
}

fn traced_minutes() -> TracedHistogram {
    HistogramWithExemplars::new(UP_TO_MINUTES.into_iter())
}

/// Creates a histogram for requests.
fn milliseconds() -> Histogram {
    Histogram::new(UP_TO_SECONDS)
}

fn traced_milliseconds() -> TracedHistogram {
    HistogramWithExemplars::new(UP_TO_SECONDS.into_iter())
}

/// Creates a histogram for calls of policies.
fn microseconds() -> Histogram {
    Histogram::new([25e-6, 50e-6, 100e-6, 250e-6, 1e-3, 5e-3, 25e-3, 100e-3, 200e-3, 1.0])
}
