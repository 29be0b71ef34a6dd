//! Transitions of a running lab.

use jiff::Timestamp;

use super::{Effect, Ending, Failure, Lab, Operation, Phase, RestartPolicy};
use crate::lifecycle::progress::{Entry, StageReport};
use crate::lifecycle::stage::{Analysis, DELETED, Stage};
use crate::names::spawn_key::SpawnKind;

/// The message for the user of a lab in a workload when the lab continues in another pod.
const MOVED: &str =
    "The pod of your lab is gone. The lab goes on in another pod of its workload, where it has begun anew.";

impl Lab {
    /// Begins the cleanup of a running lab whose pod ended. Losing readiness does not end a lab, and neither does a
    /// container that the kubelet restarts, unless that happens too often.
    pub(super) fn observe_running(
        &mut self,
        analysis: &Analysis,
        policy: RestartPolicy,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let noun = self.noun();
        let ending = match analysis.stage {
            Stage::Unknown if self.observed.pod.is_missing() => {
                Some(Ending::Gone(format!("The {noun}'s pod was deleted")))
            }
            Stage::Stopped => Some(Ending::Gone(format!("The {noun} has shut down"))),
            Stage::Terminating if analysis.reason == DELETED => {
                Some(Ending::Gone(format!("The {noun}'s pod is being deleted")))
            }
            // The cluster needs the machine, or the workload does not have the lab any more; the message has the
            // details.
            Stage::Terminating => Some(Ending::Gone(analysis.message.clone())),
            Stage::Failed => Some(Ending::Crashed(Failure::from_analysis(analysis))),
            Stage::Running
            | Stage::Starting
            | Stage::Binding
            | Stage::Scheduling
            | Stage::Pulling
            | Stage::Initializing
            | Stage::Unknown => None,
        };
        if let Some(ending) = ending {
            return effects.push(Effect::Cleanup(ending));
        }
        self.publish_findings(&analysis.findings, effects);
        if self.moved(effects) {
            return;
        }
        self.count_restarts(analysis, policy, now, effects);
    }

    /// Returns true if a lab in a workload continues in another pod, because its previous pod is gone. The lab begins
    /// again there.
    fn moved(&mut self, effects: &mut Vec<Effect>) -> bool {
        let Phase::Running(running) = &mut self.phase else { return false };
        let Some(pod) = self.observed.pod_uid.as_ref().filter(|_| self.kind == SpawnKind::Injected) else {
            return false;
        };
        if running.pod_uid.as_ref() == Some(pod) {
            return false;
        }
        if running.pod_uid.replace(pod.clone()).is_none() {
            return false;
        }
        running.restarts.begin_anew();
        effects.push(Effect::Restarted(1));
        effects.push(Effect::Publish(Entry::Error(MOVED.to_owned())));
        true
    }

    fn count_restarts(
        &mut self,
        analysis: &Analysis,
        policy: RestartPolicy,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let noun = self.noun();
        let Phase::Running(running) = &mut self.phase else { return };
        if analysis.stage == Stage::Unknown {
            return;
        }
        let new = running.restarts.count(analysis.restarts, now);
        if new == 0 {
            return;
        }
        let unexplained = || format!("Your {noun} stopped unexpectedly and was restarted.");
        let why = analysis.last_end.clone().unwrap_or_else(unexplained);
        if running.restarts.are_too_many(policy, now) {
            let message =
                format!("{why} It was restarted more than {} times in a short while.", policy.allowed);
            let failure =
                Failure { exit_code: analysis.exit_code, ..Failure::cluster("CrashLoopBackOff", message) };
            effects.push(Effect::Cleanup(Ending::Crashed(failure)));
        } else {
            effects.push(Effect::Restarted(new));
            effects.push(Effect::Publish(Entry::Error(why)));
        }
    }

    /// Shows the latest restart and its cause as the lab's stage.
    pub(super) fn show_restarts(&mut self, analysis: &Analysis) {
        let Phase::Running(running) = &self.phase else { return };
        if running.restarts() == 0 {
            return;
        }
        match &analysis.last_end {
            Some(why) => self.stage = Some((analysis.stage, "Restarted".to_owned(), why.clone())),
            None if running.restarts.has_moved() => {
                self.stage = Some((analysis.stage, "Moved".to_owned(), MOVED.to_owned()));
            }
            None => {}
        }
    }

    /// Ends a running lab and begins a cleanup operation for its remaining objects. If the lab shut down or was
    /// deleted, the user gets no error; if it crashed, it counts as failed.
    pub(super) fn begin_cleanup(
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
                let Analysis { stage, reason, message, .. } = self.observed.analysis.clone();
                if matches!(stage, Stage::Stopped | Stage::Terminating) {
                    self.enter_stage(StageReport::new(stage, (&reason, &message), 0, now), effects);
                }
                self.stop(now, effects);
            }
        }
    }
}
