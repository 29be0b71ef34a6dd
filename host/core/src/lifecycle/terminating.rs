//! A lab on its way down: stopped on request, or cleaned after a failure.

use jiff::Timestamp;

use super::deletion::Deletion;
use super::{DeleteStep, Effect, Failure, Lab, Operation, Outcome, Phase, SpawnStep};
use crate::progress::Entry;

impl Lab {
    /// A stop always wins: it cancels a spawn wherever that is.
    pub(super) fn begin_stop(&mut self, operation: Operation, effects: &mut Vec<Effect>) {
        let operation = self.within_its_own_limit(operation);
        let was = std::mem::replace(&mut self.phase, Phase::Terminating(DeleteStep::Draining));
        match was {
            Phase::Starting(step) => {
                effects.push(Effect::Finish(Outcome::Cancelled));
                effects
                    .push(Effect::Publish(Entry::Failed("The lab was stopped before it was ready".into())));
                self.begin(operation, effects);
                if step == SpawnStep::Deciding {
                    effects.push(Effect::CancelPolicy);
                }
            }
            Phase::Running | Phase::Failed { cleanup: None, .. } => self.begin(operation, effects),
            other => return self.phase = other,
        }
        effects.push(Effect::Publish(Entry::Progress(10)));
        effects.push(Effect::Publish(Entry::Info("Stopping the lab".into())));
        self.begin_termination(effects);
    }

    pub(super) fn begin_termination(&mut self, effects: &mut Vec<Effect>) {
        let next = self.begin_deletion(effects);
        self.terminate(next, effects);
    }

    pub(super) fn continue_termination(&mut self, step: DeleteStep, effects: &mut Vec<Effect>) {
        let next = self.continue_deletion(step, effects);
        if (step, &next) == (DeleteStep::Pod, &Deletion::Continue(DeleteStep::Rest)) {
            effects.push(Effect::Publish(Entry::Progress(50)));
            effects.push(Effect::Publish(Entry::Info("The lab has stopped; removing its resources".into())));
        }
        self.terminate(next, effects);
    }

    fn terminate(&mut self, next: Deletion, effects: &mut Vec<Effect>) {
        match next {
            Deletion::Continue(step) => self.phase = Phase::Terminating(step),
            Deletion::Done => {
                self.phase = Phase::Absent;
                effects.push(Effect::Publish(Entry::Progress(100)));
                effects.push(Effect::Finish(Outcome::Complete));
                effects.push(Effect::Publish(Entry::Complete("The lab is stopped".into())));
            }
        }
    }

    /// Ends the operation under way in failure and cleans what it left.
    pub(super) fn fail(&mut self, failure: Failure, now: Timestamp, effects: &mut Vec<Effect>) {
        self.give_up(failure, effects);
        self.begin_cleanup(now, effects);
    }

    /// Ends the operation under way in failure and leaves what is there: a deletion that did not work is tried again
    /// by reconciliation, not at once.
    pub(super) fn give_up(&mut self, failure: Failure, effects: &mut Vec<Effect>) {
        effects.push(Effect::Publish(Entry::Error(failure.message.clone())));
        effects.push(Effect::Finish(Outcome::Failed(failure.clone())));
        effects.push(Effect::Publish(Entry::Failed(failure.message.clone())));
        self.phase = Phase::Failed { failure, cleanup: None };
    }

    pub(super) fn retry_cleanup(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        if matches!(self.phase, Phase::Failed { cleanup: None, .. }) {
            self.begin_cleanup(now, effects);
        }
    }

    /// Deletes what a failure left, with a time limit of its own.
    pub(super) fn begin_cleanup(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        if let Some(operation) = &mut self.operation {
            operation.deadline = now.checked_add(self.limits.delete).unwrap_or(Timestamp::MAX);
        }
        let next = self.begin_deletion(effects).step();
        self.set_cleanup(next);
    }

    /// A deletion, with the time limit that this lab's policies gave it.
    pub(super) fn within_its_own_limit(&self, deletion: Operation) -> Operation {
        let deadline = deletion.started_at.checked_add(self.limits.delete).unwrap_or(Timestamp::MAX);
        Operation { deadline, ..deletion }
    }

    pub(super) fn continue_cleanup(&mut self, step: DeleteStep, effects: &mut Vec<Effect>) {
        let next = self.continue_deletion(step, effects).step();
        self.set_cleanup(next);
    }

    fn set_cleanup(&mut self, step: Option<DeleteStep>) {
        if let Phase::Failed { cleanup, .. } = &mut self.phase {
            *cleanup = step;
        }
    }

    pub(super) fn begin(&mut self, operation: Operation, effects: &mut Vec<Effect>) {
        self.operation = Some(operation);
        self.told.clear();
        self.stage = None;
        effects.push(Effect::Begin(operation));
    }

    pub(super) fn deletion_timed_out(&self) -> Failure {
        let what = if self.pod.is_missing() { "resources" } else { "pod" };
        Failure::cluster(
            "DeleteTimeout",
            format!("The lab's {what} could not be removed in time; it will be tried again"),
        )
    }
}
