//! A lab that answers.

use jiff::Timestamp;

use super::{Effect, Ending, Failure, Lab, Operation, Phase};
use crate::progress::Entry;
use crate::stage::{Analysis, Stage};

impl Lab {
    /// A running lab whose pod ended is reaped. Losing readiness for a while is no end.
    pub(super) fn observe_running(&mut self, analysis: &Analysis, effects: &mut Vec<Effect>) {
        let ending = match analysis.stage {
            _ if self.pod.is_missing() => Ending::Gone("The lab's pod was taken away".into()),
            Stage::Stopped => Ending::Gone("The lab has shut down".into()),
            Stage::Terminating => Ending::Gone("The lab's pod is being taken away".into()),
            Stage::Failed => Ending::Crashed(Failure::cluster(&analysis.reason, &analysis.message)),
            Stage::Running
            | Stage::Starting
            | Stage::Scheduling
            | Stage::Pulling
            | Stage::Initializing
            | Stage::Unknown => return self.tell(&analysis.findings, effects),
        };
        effects.push(Effect::Reap(ending));
    }

    /// What is left of a lab that ended by itself is removed, in an operation of its own: silently for the user when it
    /// stopped or was taken away, as a failure when it crashed.
    pub(super) fn begin_reap(
        &mut self,
        operation: Operation,
        ending: Ending,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if self.phase != Phase::Running {
            return;
        }
        self.begin(self.within_its_own_limit(operation), effects);
        match ending {
            Ending::Crashed(failure) => self.fail(failure, now, effects),
            Ending::Gone(message) => {
                effects.push(Effect::Publish(Entry::Info(message)));
                self.begin_termination(effects);
            }
        }
    }
}
