//! Transitions of a lab that is being deleted: it was stopped on request, ended by itself, or failed.

use jiff::Timestamp;

use super::{Deletion, Effect, Failed, Failure, Lab, Operation, OperationKind, Outcome, Phase, Presence};
use crate::lifecycle::progress::{Entry, StageReport, percent};
use crate::lifecycle::stage::{Stage, without_last_words};

/// Progress of a stop in percent: when it begins, and when the pod is gone.
const STOPPING: u8 = 10;
const POD_GONE: u8 = 50;

/// Marks the stages among what the operation has published.
const ENTERED: &str = "entered the stage";

impl Lab {
    /// Begins a stop. A stop is always accepted; it cancels a spawn at any step.
    pub(super) fn begin_stop(&mut self, operation: Operation, now: Timestamp, effects: &mut Vec<Effect>) {
        match self.phase {
            Phase::Starting(_) => {
                let message = format!("The {} was stopped before it was ready", self.noun());
                let report = StageReport::new(
                    Stage::Terminating,
                    ("Cancelled", &message),
                    percent(Stage::Terminating),
                    now,
                );
                self.enter_stage(report, effects);
                effects.push(Effect::Finish(Outcome::Cancelled));
                effects.push(Effect::Publish(Entry::Failed(message)));
            }
            Phase::Running(_) | Phase::Failed(_) => {}
            Phase::Absent | Phase::NamespaceKept(_) | Phase::Stopping(_) | Phase::CleaningUp(_) => return,
        }
        self.begin(self.within_its_own_limit(operation), effects);
        effects.push(Effect::Publish(Entry::Progress(STOPPING)));
        effects.push(Effect::Publish(Entry::Info(format!("Stopping the {}", self.noun()))));
        self.stop(now, effects);
    }

    /// Begins the deletion of what is left. A pod that has ended by itself is stopped already.
    pub(super) fn stop(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        if !self.observed.pod.is_missing() && !self.has_entered(Stage::Stopped) {
            let message = format!("Your {} is being stopped.", self.noun());
            let report = StageReport::new(Stage::Terminating, ("Stopping", &message), STOPPING, now);
            self.enter_stage(report, effects);
        }
        self.phase = Phase::Stopping(self.deletion(now));
        self.advance_deletion(now, effects);
    }

    /// Advances the deletion under way, according to the objects that are left in the cluster.
    pub(super) fn advance_deletion(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let gone = self.observed.is_nothing() && !self.in_flight.creates();
        match &self.phase {
            Phase::Stopping(_) => self.advance_stop(gone, now, effects),
            Phase::CleaningUp(_) if gone => self.phase = self.ended(now),
            // A deletion that had failed has completed after all.
            Phase::Failed(failed) if gone && failed.operation == OperationKind::Stop => {
                self.phase = self.ended(now);
            }
            Phase::NamespaceKept(_) if !gone => self.phase = Phase::CleaningUp(self.deletion(now)),
            // Somebody else has deleted the namespace.
            Phase::NamespaceKept(_) if self.observed.kept_for.is_none() => self.phase = Phase::Absent,
            Phase::Starting(_) => self.continue_cleaning(gone, effects),
            Phase::CleaningUp(_)
            | Phase::NamespaceKept(_)
            | Phase::Failed(_)
            | Phase::Absent
            | Phase::Running(_) => {}
        }
    }

    /// Advances a stop. It is complete for its user once the pod is gone and the API server has accepted the deletion
    /// of the rest.
    fn advance_stop(&mut self, gone: bool, now: Timestamp, effects: &mut Vec<Effect>) {
        if self.in_flight.creates() || !self.observed.pod.is_missing() {
            return;
        }
        if self.observed.rest == Presence::Present {
            if self.first_time("pod", "gone") {
                effects.push(Effect::Publish(Entry::Progress(POD_GONE)));
                self.enter_stage(StageReport::stopped(self.noun(), POD_GONE, now), effects);
                let message = format!("The {} has stopped; removing its resources", self.noun());
                effects.push(Effect::Publish(Entry::Info(message)));
            }
            return;
        }
        self.phase = if gone { self.ended(now) } else { Phase::CleaningUp(self.deletion(now)) };
        effects.push(Effect::Publish(Entry::Progress(100)));
        self.enter_stage(StageReport::stopped(self.noun(), 100, now), effects);
        effects.push(Effect::Finish(Outcome::Complete));
        effects.push(Effect::Publish(Entry::Complete(format!("The {} is stopped", self.noun()))));
    }

    /// Begins the deletion of the namespace that was kept.
    pub(super) fn delete_kept_namespace(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.give_up_namespace(effects);
        self.phase = Phase::CleaningUp(self.deletion(now));
    }

    pub(super) fn give_up_namespace(&mut self, effects: &mut Vec<Effect>) {
        if self.observed.kept_for.take().is_some() {
            self.observed.rest = Presence::Present;
            effects.push(Effect::GiveUpNamespace);
        }
    }

    /// Publishes a stage of an operation that ends or deletes, each stage once.
    pub(super) fn enter_stage(&mut self, report: StageReport, effects: &mut Vec<Effect>) {
        if self.first_time(ENTERED, report.stage.as_str()) {
            effects.push(Effect::Publish(Entry::Stage(report)));
        }
    }

    fn has_entered(&self, stage: Stage) -> bool {
        self.published.contains(&(ENTERED.to_owned(), stage.as_str().to_owned()))
    }

    /// Reports a failed request. The request is repeated until the operation's time limit.
    pub(super) fn on_request_failed(&mut self, failure: &Failure, effects: &mut Vec<Effect>) {
        if matches!(self.phase, Phase::Stopping(_) | Phase::Starting(_))
            && self.first_time(&failure.reason, &failure.message)
        {
            effects.push(Effect::Publish(Entry::Error(failure.message.clone())));
        }
    }

    /// Restarts the deletion's time limit when the children, the pod or the rest have made progress.
    pub(super) fn note_progress(&mut self, before: ([Presence; 3], usize), now: Timestamp) {
        let after = self.observed.presences();
        let fresh = self.deletion(now);
        if let Phase::Stopping(deletion) | Phase::CleaningUp(deletion) = &mut self.phase
            && after != before
        {
            *deletion = fresh;
        }
    }

    /// Ends the operation under way as failed. The objects that it left are then deleted, without a time limit.
    pub(super) fn fail(&mut self, failure: Failure, now: Timestamp, effects: &mut Vec<Effect>) {
        let operation = match self.phase {
            Phase::Stopping(_) => OperationKind::Stop,
            _ => OperationKind::Spawn,
        };
        effects.push(Effect::Publish(Entry::Stage(StageReport::failed(&failure, now))));
        effects.push(Effect::Publish(Entry::Error(failure.message.clone())));
        effects.push(Effect::Finish(Outcome::Failed(failure.clone())));
        effects.push(Effect::Publish(Entry::Failed(failure.message.clone())));
        self.phase = Phase::Failed(Failed { failure, at: now, operation });
    }

    /// Returns the deletion with the time limit that the lab's policies set, if any.
    pub(super) fn within_its_own_limit(&self, deletion: Operation) -> Operation {
        Operation { deadline: super::operation::after(deletion.started_at, self.limits.delete), ..deletion }
    }

    pub(super) fn begin(&mut self, operation: Operation, effects: &mut Vec<Effect>) {
        self.operation = Some(operation);
        self.published.clear();
        self.stage = None;
        self.waits_for = None;
        self.in_flight.begin_operation();
        effects.push(Effect::Begin(operation));
    }

    /// Returns true the first time that this reason and message occur in the operation.
    pub(super) fn first_time(&mut self, reason: &str, message: &str) -> bool {
        self.published.insert((reason.to_owned(), without_last_words(message).to_owned()))
    }

    pub(super) fn deletion_timed_out(&self) -> Failure {
        let what = match &self.observed {
            observed if !observed.children.is_missing() => "kernels and pools",
            observed if observed.pod.is_missing() => "resources",
            _ => "pod",
        };
        let mut message =
            format!("The {}'s {what} could not be removed in time; the service keeps trying", self.noun());
        if let Some(detail) = &self.observed.stuck {
            message = format!("{message} ({detail})");
        }
        Failure::cluster("DeleteTimeout", message)
    }
}

impl Deletion {
    /// Marks the operation as overdue if its time limit has passed.
    pub(super) fn expire(&mut self, now: Timestamp) {
        self.overdue |= now >= self.deadline;
    }
}
