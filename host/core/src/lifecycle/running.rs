//! A lab that answers.

use jiff::Timestamp;

use super::{Effect, Failure, Lab, Phase};
use crate::stage::{Analysis, Stage};

impl Lab {
    /// A running lab whose pod ended is reaped: silently when it stopped or was taken away, as a failure when it
    /// crashed. Losing readiness for a while is no end.
    pub(super) fn observe_running(&mut self, analysis: &Analysis, now: Timestamp, effects: &mut Vec<Effect>) {
        if self.pod.is_missing() {
            return self.reap(now, effects);
        }
        match analysis.stage {
            Stage::Stopped | Stage::Terminating => self.reap(now, effects),
            Stage::Failed => self.crash(Failure::cluster(&analysis.reason, &analysis.message), now, effects),
            Stage::Running
            | Stage::Starting
            | Stage::Scheduling
            | Stage::Pulling
            | Stage::Initializing
            | Stage::Unknown => self.tell(&analysis.findings, effects),
        }
    }

    fn reap(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.limit_deletion(now);
        self.phase = Phase::Terminating(super::DeleteStep::Pod);
        self.begin_termination(effects);
    }

    /// The spawn's own record is closed: the failure is the lab's state, and the cleaning follows.
    fn crash(&mut self, failure: Failure, now: Timestamp, effects: &mut Vec<Effect>) {
        self.phase = Phase::Failed { failure, cleanup: None };
        self.begin_cleanup(now, effects);
    }
}
