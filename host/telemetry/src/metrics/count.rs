//! Updates the metrics. No update waits.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use http::{Method, StatusCode};
use prometheus_client::metrics::gauge::Gauge;
use wasmspawner_core::custom_resource::environment::PhaseCounts;
use wasmspawner_core::lifecycle::LabStatus;
use wasmspawner_core::lifecycle::stage::Stage;
use wasmspawner_core::names::spawn_key::ChildKind;

use super::labels::{
    BlameLabel, ChildLabels, ChildOutcomeLabels, HookLabels, HttpLabels, KubernetesLabels, OutcomeLabel,
    PhaseLabel, PolicyLabels, RouteLabels, StageLabel, StatusLabel, TraceLabel, VerbLabel, WatchLabel,
    WorkersLabel,
};
use super::{Metrics, blame_label};
use crate::method::method_label;
use crate::outcome::{HubCheck, Prepull, PrepullCounts, Reload, SpawnOutcome};
use crate::trace_id::TraceId;

impl Metrics {
    /// Counts restarts of containers of running labs.
    pub fn labs_restarted(&self, count: u32) {
        self.restarts.inc_by(count.into());
    }

    /// Counts a panic of a task that works for one lab.
    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// Sets the time since the last event of the watch of `kind`.
    pub fn set_watch_silence(&self, kind: &'static str, silence: Duration) {
        let seconds = i64::try_from(silence.as_secs()).unwrap_or(i64::MAX);
        self.watches.get_or_create(&WatchLabel { kind }).set(seconds);
    }

    /// Sets the number of objects that belong to no lab.
    pub fn set_orphans(&self, count: usize) {
        set(&self.orphans, count);
    }

    /// Sets whether no policy can be asked, because one could not be loaded.
    pub fn set_policies_missing(&self, missing: bool) {
        self.reloads.missing.set(missing.into());
    }

    /// Sets the number of labs with less than the security baseline.
    pub fn set_lifted_labs(&self, count: usize) {
        set(&self.lifted_labs, count);
    }

    /// Sets the number of records that cannot be read.
    pub fn set_unreadable_records(&self, count: usize) {
        set(&self.unreadable_records, count);
    }

    /// Sets the number of labs that JupyterHub does not know.
    pub fn set_forgotten(&self, count: usize) {
        set(&self.forgotten, count);
    }

    /// Counts a lab that is stopped because JupyterHub does not know it.
    pub fn forgotten_stopped(&self) {
        self.forgotten_stopped.inc();
    }

    /// Counts a comparison of the labs with the servers of JupyterHub, or an attempt at one.
    pub fn hub_checked(&self, outcome: HubCheck) {
        self.hub_checks.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }).inc();
    }

    /// Counts a finished prepull, and observes the time that a successful one took.
    pub fn prepulled(&self, outcome: Prepull, took: Duration) {
        self.prepulls.ended.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }).inc();
        if outcome == Prepull::Pulled {
            self.prepulls.seconds.observe(took.as_secs_f64());
        }
    }

    /// Sets the numbers of prepulls.
    pub fn set_prepulls(&self, counts: PrepullCounts) {
        set(&self.prepulls.running, counts.running);
        set(&self.prepulls.missing, counts.missing);
        set(&self.prepulls.failing, counts.failing);
    }

    /// Sets the number of operations in the history, whether it cannot be written to its store, and how many changes were
    /// given up because too many waited for that.
    pub fn set_history(&self, count: usize, failing: bool, dropped: u64) {
        set(&self.history, count);
        self.history_failing.set(failing.into());
        self.history_dropped.inner().store(dropped, Ordering::Relaxed);
    }

    /// Counts a finished spawn and observes the time that it took. A failure is also counted under whoever can remedy
    /// it.
    pub fn spawn_ended(&self, outcome: SpawnOutcome, took: Duration, trace: Option<TraceId>) {
        let label = OutcomeLabel { outcome: outcome.as_str() };
        self.spawns.get_or_create(&label).inc();
        observe(&self.spawn_seconds, &label, took, trace);
        if let SpawnOutcome::Failed(blame) = outcome {
            self.spawn_failures.get_or_create(&BlameLabel { blame: blame_label(blame) }).inc();
        }
    }

    /// Sets the number of spawns in progress, and their limit.
    pub fn set_spawns_in_progress(&self, count: usize, most: usize) {
        set(&self.in_progress, count);
        set(&self.in_progress_limit, most);
    }

    /// Observes the time that a lab spent in a stage.
    pub fn stage_left(&self, stage: Stage, after: Duration) {
        self.stages.get_or_create(&StageLabel { stage: stage.as_str() }).observe(after.as_secs_f64());
    }

    /// Sets the number of labs with this status.
    pub fn set_labs(&self, status: LabStatus, count: usize) {
        set(&self.labs.get_or_create(&StatusLabel { status: status.as_str() }), count);
    }

    /// Sets the numbers of claims and targets in each phase.
    pub fn set_environments(&self, counts: &PhaseCounts) {
        for (phase, count) in &counts.claims {
            set(&self.environments.claims.get_or_create(&PhaseLabel { phase: phase.as_str() }), *count);
        }
        for (phase, count) in &counts.targets {
            set(&self.environments.targets.get_or_create(&PhaseLabel { phase: phase.as_str() }), *count);
        }
    }

    /// Sets the number of other clusters that do not answer.
    pub fn set_clusters_away(&self, count: usize) {
        set(&self.environments.clusters_away, count);
    }

    /// Sets the number of kernels or Dask pools with this status.
    pub fn set_children(&self, kind: ChildKind, status: LabStatus, count: usize) {
        let labels = ChildLabels { kind: name(kind), status: status.as_str() };
        set(&self.children.get_or_create(&labels), count);
    }

    /// Counts a finished start of a kernel or a Dask pool.
    pub fn child_start_ended(&self, kind: ChildKind, outcome: SpawnOutcome) {
        let labels = ChildOutcomeLabels { kind: name(kind), outcome: outcome.as_str() };
        self.child_starts.get_or_create(&labels).inc();
    }

    /// Sets the number of workers that the Dask pools should have, and the number that are connected to their
    /// schedulers.
    pub fn set_workers(&self, wanted: usize, ready: usize) {
        set(&self.workers.get_or_create(&WorkersLabel { state: "wanted" }), wanted);
        set(&self.workers.get_or_create(&WorkersLabel { state: "ready" }), ready);
    }

    /// Counts and times a request to the Kubernetes API. No status means that there was no answer. A watch is not
    /// timed, because its answer lasts as long as the watch itself.
    pub fn kubernetes_request(&self, verb: &'static str, status: Option<u16>, took: Duration) {
        let code = match status {
            Some(100..=199) => "1xx",
            Some(200..=299) => "2xx",
            Some(300..=399) => "3xx",
            Some(400..=499) => "4xx",
            Some(_) => "5xx",
            None => "none",
        };
        self.kubernetes.get_or_create(&KubernetesLabels { verb, code }).inc();
        if verb != "watch" {
            self.kubernetes_seconds.get_or_create(&VerbLabel { verb }).observe(took.as_secs_f64());
        }
    }

    /// Observes the time that a request to the Kubernetes API waited for its turn.
    pub fn kubernetes_queued(&self, waited: Duration) {
        self.kubernetes_queue.observe(waited.as_secs_f64());
    }

    /// Sets whether this process leads its installation.
    pub fn set_leads(&self, leads: bool) {
        self.leads.set(leads.into());
    }

    /// Sets whether the service knows its labs, and whether the Kubernetes API does not answer.
    pub fn set_state(&self, ready: bool, kubernetes_away: bool) {
        self.ready.set(ready.into());
        self.kubernetes_away.set(kubernetes_away.into());
    }

    /// Sets the number of tasks, and the time that a new task waited for a free thread.
    pub fn set_load(&self, tasks: usize, delay: Duration) {
        set(&self.tasks, tasks);
        self.event_loop_delay.set(delay.as_secs_f64());
    }

    /// Counts and times a call of a hook. `kind` is `ok` or the kind of the error, never an error's text.
    pub fn policy_called(&self, policy: &str, hook: &'static str, kind: &'static str, took: Duration) {
        let labels = PolicyLabels { policy: policy.to_owned(), hook, kind };
        self.policy_calls.get_or_create(&labels).inc();
        let labels = HookLabels { policy: policy.to_owned(), hook };
        self.policy_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts a call of a policy that has a candidate. `kind` is `same`, `different` or `skipped`.
    pub fn policy_compared(&self, policy: &str, hook: &'static str, kind: &'static str) {
        let labels = PolicyLabels { policy: policy.to_owned(), hook, kind };
        self.policy_comparisons.get_or_create(&labels).inc();
    }

    /// Counts a reload of the configuration or of the policies.
    pub fn reloaded(&self, outcome: Reload) {
        self.reloads.reloads.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }).inc();
        self.reloads.last_successful.set(i64::from(outcome == Reload::Done));
    }

    /// Counts spans that were sent to the collector, or lost because the collector did not accept them.
    pub fn spans_exported(&self, count: usize, accepted: bool) {
        let outcome = if accepted { "sent" } else { "failed" };
        self.spans.get_or_create(&OutcomeLabel { outcome }).inc_by(count.try_into().unwrap_or(u64::MAX));
    }

    /// Counts a span that is dropped because the queue is full.
    pub fn span_dropped(&self) {
        self.spans.get_or_create(&OutcomeLabel { outcome: "dropped" }).inc();
    }

    /// Counts a reader of an event stream until the returned value is dropped.
    pub fn sse_reader(&self) -> SseReader {
        self.sse_readers.inc();
        SseReader(self.sse_readers.clone())
    }

    /// Counts and times an answered request. `route` is the pattern of the router, never the path. The time of an event
    /// stream ends at the first byte of its answer.
    pub fn http_request(
        &self,
        method: &Method,
        route: &str,
        status: StatusCode,
        took: Duration,
        trace: Option<TraceId>,
    ) {
        let (method, route) = (method_label(method), route.to_owned());
        let labels = HttpLabels { method, route: route.clone(), status: status.as_u16() };
        self.http.get_or_create(&labels).inc();
        observe(&self.http_seconds, &RouteLabels { method, route }, took, trace);
    }
}

/// An open event stream, which is counted until this value is dropped.
#[derive(Debug)]
pub struct SseReader(Gauge);

impl Drop for SseReader {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

/// Observes a duration, with the trace in which it was measured as the exemplar.
fn observe<L>(histograms: &super::TracedHistograms<L>, labels: &L, took: Duration, trace: Option<TraceId>)
where
    L: Clone + std::hash::Hash + Eq,
{
    let at = trace.as_ref().map(|_| SystemTime::now());
    let trace = trace.map(|trace_id| TraceLabel { trace_id: trace_id.to_string() });
    histograms.get_or_create(labels).observe(took.as_secs_f64(), trace, at);
}

fn name(kind: ChildKind) -> &'static str {
    match kind {
        ChildKind::Kernel => "kernel",
        ChildKind::DaskPool => "dask_pool",
    }
}
