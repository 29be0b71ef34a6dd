//! A lab that answers.

use jiff::Timestamp;

use super::{Effect, Ending, Failure, Lab, Operation, Phase, RestartPolicy};
use crate::progress::Entry;
use crate::stage::{Analysis, Stage};

impl Lab {
    /// A running lab whose pod ended is removed. Losing readiness for a while is no end, and neither is a container
    /// that the kubelet restarts, unless that happens too often.
    pub(super) fn observe_running(
        &mut self,
        analysis: &Analysis,
        policy: RestartPolicy,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let ending = match analysis.stage {
            _ if self.observed.pod.is_missing() => {
                Some(Ending::Gone("The lab's pod was deleted".into()))
            }
            Stage::Stopped => Some(Ending::Gone("The lab has shut down".into())),
            Stage::Terminating => Some(Ending::Gone("The lab's pod is being deleted".into())),
            Stage::Failed => Some(Ending::Crashed(Failure::cluster(&analysis.reason, &analysis.message))),
            Stage::Running
            | Stage::Starting
            | Stage::Scheduling
            | Stage::Pulling
            | Stage::Initializing
            | Stage::Unknown => None,
        };
        if let Some(ending) = ending {
            return effects.push(Effect::Cleanup(ending));
        }
        self.tell(&analysis.findings, effects);
        self.count_restarts(analysis, policy, now, effects);
    }

    fn count_restarts(
        &mut self,
        analysis: &Analysis,
        policy: RestartPolicy,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let Phase::Running(running) = &mut self.phase else { return };
        let new = running.restarts.count(analysis.restarts, now);
        if new == 0 {
            return;
        }
        let why = analysis.last_end.as_deref().unwrap_or("Your lab stopped unexpectedly and was restarted.");
        if running.restarts.are_too_many(policy, now) {
            let failure = Failure::cluster(
                "CrashLoopBackOff",
                format!("{why} It was restarted more than {} times in a short while.", policy.allowed),
            );
            effects.push(Effect::Cleanup(Ending::Crashed(failure)));
        } else {
            effects.push(Effect::Restarted(new));
            effects.push(Effect::Publish(Entry::Error(why.to_owned())));
        }
    }

    /// Whoever looks at a lab that was restarted reads how that came about.
    pub(super) fn show_restarts(&mut self, analysis: &Analysis) {
        if let (Phase::Running(running), Some(why)) = (&self.phase, &analysis.last_end)
            && running.restarts() > 0
        {
            self.stage = Some((analysis.stage, "Restarted".to_owned(), why.clone()));
        }
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
        if !matches!(self.phase, Phase::Running(_)) {
            return;
        }
        self.begin(self.within_its_own_limit(operation), effects);
        match ending {
            Ending::Crashed(failure) => self.fail(failure, now, effects),
            Ending::Gone(message) => {
                effects.push(Effect::Publish(Entry::Info(message)));
                self.stop(now, effects);
            }
        }
    }
}
