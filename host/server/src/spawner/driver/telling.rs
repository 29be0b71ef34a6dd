//! What everybody else is told of a lab.

use std::sync::Arc;

use jiff::Timestamp;
use wasmspawner_core::lifecycle::{Event, LabStatus, Operation, Outcome};
use wasmspawner_core::progress::{Entry, LoggedEntry, OperationRecord, ProgressLog};

use super::Driver;
use crate::spawner::live_log::LiveLog;
use crate::spawner::place::Place;
use crate::spawner::snapshot::LabSnapshot;
use crate::spawner::tally::count;
use crate::spawner::view::View;

impl Driver {
    pub(super) fn begin(&mut self, operation: &Operation) {
        let record = OperationRecord::begin(self.key.clone(), operation);
        self.site.history.put(&record);
        self.record = Some(record);
        self.log = Some(LiveLog::new(ProgressLog::new(operation.job_id)));
        // Nobody follows the log before this one any more.
        self.publish();
    }

    pub(super) fn say(&mut self, entry: Entry) {
        let Some(log) = &self.log else { return };
        let now = Timestamp::now();
        if log.is_finished() {
            return self.say_to_nobody(&entry);
        }
        // The record is complete before anybody is told that the operation is over.
        if entry.is_last() {
            if let Some(mut record) = self.record.take() {
                record.note(&LoggedEntry { number: log.next_number(), at: now, entry: entry.clone() });
                self.site.history.put(&record);
            }
            self.publish();
        }
        if let Some(log) = &self.log
            && let Some(logged) = log.append(entry, now)
            && let Some(record) = &mut self.record
        {
            record.note(&logged);
        }
    }

    /// A running lab has no operation whose events somebody could follow: its administrators may want to know.
    fn say_to_nobody(&self, entry: &Entry) {
        if let Entry::Error(message) = entry {
            tracing::warn!(user = %self.key.user, server = %self.key.server, message, "a running lab is in trouble");
        }
    }

    pub(super) fn finish(&mut self, outcome: &Outcome) {
        let Some(record) = &mut self.record else { return };
        record.end(outcome.clone(), Timestamp::now());
        count(&self.site.metrics, record, outcome);
        tracing::info!(user = %self.key.user, server = %self.key.server, job_id = %record.job_id, kind = ?record.kind, ?outcome, "operation ended");
    }

    /// A spawn that a restart cut short has nobody who says so but its successor.
    pub(super) fn interrupted(&mut self) {
        if let Some(failure) = self.lab.failure().cloned() {
            self.finish(&Outcome::Failed(failure.clone()));
            self.say(Entry::Failed(failure.message));
            self.feed(Event::Reconcile);
        }
    }

    pub(super) fn publish(&mut self) {
        let snapshot = self.lab.status().map(|status| Arc::new(self.snapshot(status)));
        let footprint = self.world.footprint(self.place.as_ref().map(|place| place.namespace.as_str()));
        self.view.send_replace(View { snapshot, log: self.log.clone(), footprint });
    }

    fn snapshot(&self, status: LabStatus) -> LabSnapshot {
        let failure = self.lab.failure();
        let stage = self.lab.stage();
        LabSnapshot {
            key: self.key.clone(),
            status,
            pod: self.lab.pod_presence(),
            about: Arc::clone(&self.about),
            url: self.world.pod().and_then(|pod| Place::url(pod, &self.site.config.lab.config)),
            stage: stage.map(|(stage, _, _)| stage),
            reason: failure
                .map(|failure| failure.reason.clone())
                .or(stage.map(|(_, reason, _)| reason.to_owned())),
            message: failure
                .map(|failure| failure.message.clone())
                .or(stage.map(|(_, _, text)| text.to_owned())),
            progress: self.log.as_ref().map_or(0, |log| log.progress()),
            job_id: self.job_id(),
        }
    }
}
