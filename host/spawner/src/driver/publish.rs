//! Publishes the state of a lab, its events and its history.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use wasmspawner_core::children::dask::WorkerCounts;
use wasmspawner_core::lifecycle::progress::{Entry, ProgressLog};
use wasmspawner_core::lifecycle::stage::{Finding, Stage};
use wasmspawner_core::lifecycle::{Blame, LabStatus, Operation, OperationKind, Outcome, Phase};
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::policy::usage::Run;
use wasmspawner_core::record::operation_record::OperationRecord;

use super::Driver;
use super::place_observer::PlaceObserver;
use crate::labs::lab_events::event_of;
use crate::labs::quota_claims::share_of;
use crate::published::live_log::LiveLog;
use crate::published::snapshot::{LabSnapshot, url};
use crate::published::view::View;
use wasmspawner_telemetry::{Metrics, SpawnOutcome, TraceId, trace};

impl Driver {
    pub(super) fn begin(&mut self, operation: &Operation) {
        if operation.kind != OperationKind::Spawn {
            self.context.history.run_ended(&self.key, operation.started_at);
        }
        let record = OperationRecord::begin(self.key.clone(), operation);
        self.tell_policies(&record);
        self.history = Some(self.context.history_of(&self.key).begin(record));
        self.log = Some(LiveLog::new(ProgressLog::new(operation.job_id)));
        self.span = trace::operation(operation.kind, &self.key, operation.job_id);
        if operation.kind == OperationKind::Spawn {
            // Reports from the program of an earlier child of this name do not apply to the new child.
            self.labs.kernel_links().forget(&self.key);
            if let Some(pool) = &self.about.description.pool {
                self.labs.add_pool(&self.key, pool, &WorkerCounts::new());
            }
        }
        // Readers that come now must get this log, not the previous one.
        self.publish();
    }

    /// Continues the log of the driver that panicked, if it is of the same operation; otherwise closes it.
    pub(crate) fn continue_log(&mut self, log: Option<Arc<LiveLog>>) {
        let same = |log: &Arc<LiveLog>| self.log.as_ref().is_some_and(|ours| ours.job_id() == log.job_id());
        match log {
            Some(log) if same(&log) => {
                self.log = Some(log);
                self.publish();
            }
            Some(log) => log.close(),
            None => {}
        }
    }

    /// Appends an entry to the operation's log and to its history.
    pub(crate) fn publish_entry(&mut self, entry: Entry) {
        let Some(log) = self.log.clone() else { return };
        if log.is_finished()
            && let Entry::Error(message) = &entry
        {
            tracing::warn!(user = %self.key.lab.user, server = %self.key.lab.server, message, "a running lab is in trouble");
        }
        // The lab's state shows the end of the operation before the last event does.
        if entry.is_last() {
            self.publish();
        }
        let noted = |logged: &_| {
            if let Some(history) = &self.history {
                history.note(logged);
            }
        };
        log.append(entry, Timestamp::now(), noted);
    }

    /// Adds findings from the cluster to the history.
    pub(super) fn record_findings(&self, findings: &[Finding]) {
        if let Some(history) = &self.history {
            history.note_findings(findings, Timestamp::now());
        }
    }

    pub(crate) fn finish(&self, outcome: &Outcome) {
        let Some(history) = &self.history else { return };
        if !history.end(outcome.clone(), Timestamp::now()) {
            return;
        }
        let record = history.record();
        if record.kind == OperationKind::Spawn && *outcome == Outcome::Complete {
            self.count_from(record.ended_at.unwrap_or(record.started_at));
        }
        self.tell_policies(&record);
        trace::operation_ended(&self.span, outcome);
        count(&self.context.metrics, &self.key, &record, outcome, trace::trace_of(&self.span));
        tracing::info!(user = %self.key.lab.user, server = %self.key.lab.server, job_id = %record.job_id, kind = ?record.kind, ?outcome, "operation ended");
    }

    fn tell_policies(&self, record: &OperationRecord) {
        let image = self.about.description.image.as_ref().map(|image| image.reference.clone());
        if let Some(event) = event_of(record, image) {
            self.context.policies.tell(event);
        }
    }

    /// Counts the lab, or a child of a lab, as used by its user.
    pub(crate) fn count_from(&self, since: Timestamp) {
        let share = share_of(&self.about.description);
        let (cpu_millis, memory_bytes) = (share.cpu_millis, share.memory_bytes);
        let dask_workers = self.about.description.pool.as_ref().map_or(0, |pool| pool.total().maximum);
        let run = Run { key: self.key.clone(), since, cpu_millis, memory_bytes, dask_workers };
        self.context.history.run_began(run);
    }

    pub(crate) fn publish(&mut self) {
        let snapshot = self.lab.status().map(|status| Arc::new(self.snapshot(status)));
        let view = View {
            snapshot,
            log: self.log.clone(),
            creating: self.is_creating(),
            job_id: self.job_id(),
            record: self.record.as_ref().map(|record| record.uid.clone()),
            place: self.observer.as_ref().map(|observer| observer.place().clone()),
            pod_uid: self.observer.as_ref().and_then(|observer| observer.pod()?.uid.clone()),
        };
        let snapshot = view.snapshot.clone();
        let after = view.presence();
        let before = self.view.send_replace(view).presence();
        // The lab of a child reads the child's view when it is notified of the change.
        if self.key.is_lab() || before != after {
            self.labs.note_change(&self.key, snapshot.as_deref());
        }
    }

    fn snapshot(&self, status: LabStatus) -> LabSnapshot {
        let failure = self.lab.failure();
        let stage = self.lab.stage();
        let pod = self.observer.as_ref().and_then(PlaceObserver::pod);
        let restarts = match &self.lab.phase {
            Phase::Running(running) => running.restarts(),
            _ => 0,
        };
        LabSnapshot {
            key: self.key.clone(),
            status,
            address: pod.as_ref().and_then(|pod| pod.ip.clone()),
            pod: self.lab.pod_presence(),
            about: Arc::clone(&self.about),
            url: pod.filter(|_| failure.is_none() && self.key.is_lab()).and_then(|pod| {
                let prefix = self.about.env.get("JUPYTERHUB_SERVICE_PREFIX").map_or("/", String::as_str);
                let place = self.observer.as_ref()?.place();
                url(&pod, place, prefix, &self.context.config.current())
            }),
            stage: failure.map(|_| Stage::Failed).or(stage.map(|(stage, _, _)| stage)),
            reason: failure
                .map(|failure| failure.reason.clone())
                .or(stage.map(|(_, reason, _)| reason.to_owned())),
            message: failure
                .map(|failure| failure.message.clone())
                .or(stage.map(|(_, _, text)| text.to_owned())),
            progress: self.log.as_ref().map_or(0, |log| log.progress()),
            job_id: self.job_id(),
            restarts,
            exit_code: failure.and_then(|failure| failure.exit_code),
        }
    }
}

/// Counts an ended spawn, and the time that it spent in each stage.
fn count(
    metrics: &Metrics,
    key: &SpawnKey,
    record: &OperationRecord,
    outcome: &Outcome,
    trace: Option<TraceId>,
) {
    if record.kind != OperationKind::Spawn {
        return;
    }
    let ended = match outcome {
        Outcome::Complete => SpawnOutcome::Complete,
        Outcome::Failed(failure) if failure.blame == Blame::User => SpawnOutcome::Denied,
        Outcome::Failed(failure) => SpawnOutcome::Failed(failure.blame),
        Outcome::Cancelled => SpawnOutcome::Cancelled,
    };
    if let Some(child) = &key.child {
        return metrics.child_start_ended(child.kind, ended);
    }
    let ended_at = record.ended_at.unwrap_or(record.started_at);
    let took = Duration::try_from(ended_at.duration_since(record.started_at)).unwrap_or_default();
    metrics.spawn_ended(ended, took, trace);
    for span in &record.stages {
        let spent = span.duration_ms.and_then(|millis| u64::try_from(millis).ok()).unwrap_or_default();
        metrics.stage_left(span.stage, Duration::from_millis(spent));
    }
}
