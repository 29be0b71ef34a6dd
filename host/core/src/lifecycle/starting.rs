//! A lab on its way up.

use jiff::Timestamp;

use super::deletion::Deletion;
use super::{DeleteStep, Effect, Failure, Lab, Operation, Outcome, Phase, Plan, SpawnStep};
use crate::progress::{Entry, StageReport, percent};
use crate::stage::{Analysis, Finding, Severity, Stage};

/// Progress when the policies are asked, and when objects are being created.
const DECIDING: u8 = 5;
const CREATING: u8 = 10;

impl Lab {
    pub(super) fn begin_spawn(&mut self, operation: Operation, effects: &mut Vec<Effect>) {
        if !matches!(self.phase, Phase::Absent | Phase::Failed { .. }) {
            return;
        }
        self.limits = self.usual_limits;
        self.begin(operation, effects);
        let step = match self.begin_deletion(effects) {
            Deletion::Continue(step) => {
                effects.push(Effect::Publish(Entry::Info("Removing what the previous lab left".into())));
                SpawnStep::Cleaning(step)
            }
            Deletion::Done => decide(effects),
        };
        self.phase = Phase::Starting(step);
    }

    pub(super) fn continue_cleaning(&mut self, step: DeleteStep, effects: &mut Vec<Effect>) {
        let step = match self.continue_deletion(step, effects) {
            Deletion::Continue(step) => SpawnStep::Cleaning(step),
            Deletion::Done => decide(effects),
        };
        self.phase = Phase::Starting(step);
    }

    pub(super) fn on_decided(
        &mut self,
        decision: Result<Plan, Failure>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if self.phase != Phase::Starting(SpawnStep::Deciding) {
            return;
        }
        match decision {
            Ok(plan) => {
                self.adopt(plan);
                self.phase = Phase::Starting(SpawnStep::Creating);
                publish(CREATING, "Creating the lab's resources", effects);
                self.applying = true;
                effects.push(Effect::Apply);
            }
            Err(failure) => self.fail(failure, now, effects),
        }
    }

    pub(super) fn wait_for_pod(&mut self, effects: &mut Vec<Effect>) {
        self.phase = Phase::Starting(SpawnStep::Waiting);
        publish(percent(Stage::Scheduling) - 5, "Created the lab's resources", effects);
    }

    /// A creation under way put objects there, or may have: until the watches say otherwise they are taken as present.
    pub(super) fn expect_objects(&mut self) {
        use super::Presence::{Missing, Present};
        if self.pod == Missing {
            self.pod = Present;
        }
        if self.rest == Missing {
            self.rest = Present;
        }
    }

    pub(super) fn observe_start(&mut self, analysis: &Analysis, now: Timestamp, effects: &mut Vec<Effect>) {
        self.tell(&analysis.findings, effects);
        if self.pod.is_missing() {
            return self.fail(
                Failure::cluster("PodDeleted", "The lab was deleted before it was ready"),
                now,
                effects,
            );
        }
        match analysis.stage {
            Stage::Running => self.become_running(analysis, now, effects),
            Stage::Failed | Stage::Stopped | Stage::Terminating => {
                self.fail(Failure::cluster(&analysis.reason, &analysis.message), now, effects);
            }
            Stage::Scheduling | Stage::Pulling | Stage::Initializing | Stage::Starting => {
                let report = report(analysis, now);
                effects.push(Effect::Publish(Entry::Progress(report.progress)));
                effects.push(Effect::Publish(Entry::Stage(report)));
                if self.is_news("stage", &analysis.message) {
                    effects.push(Effect::Publish(Entry::Info(analysis.message.clone())));
                }
            }
            Stage::Unknown => {}
        }
    }

    fn become_running(&mut self, analysis: &Analysis, now: Timestamp, effects: &mut Vec<Effect>) {
        self.phase = Phase::Running;
        effects.push(Effect::Publish(Entry::Stage(report(analysis, now))));
        effects.push(Effect::Publish(Entry::Progress(100)));
        effects.push(Effect::MarkProvisioned);
        effects.push(Effect::Finish(Outcome::Complete));
        effects.push(Effect::Publish(Entry::Complete("The lab is ready".into())));
    }

    /// Says what the cluster said, each thing once an operation.
    pub(super) fn tell(&mut self, findings: &[Finding], effects: &mut Vec<Effect>) {
        for finding in findings {
            if self.is_news(&finding.reason, &finding.message) {
                let text = finding.message.clone();
                effects.push(Effect::Publish(match finding.severity {
                    Severity::Info => Entry::Info(text),
                    Severity::Warning | Severity::Critical => Entry::Error(text),
                }));
            }
        }
    }

    fn is_news(&mut self, reason: &str, message: &str) -> bool {
        self.told.insert((reason.to_owned(), message.to_owned()))
    }

    fn adopt(&mut self, plan: Plan) {
        if let Some(limit) = plan.delete_limit {
            self.limits.delete = limit;
        }
        if let (Some(limit), Some(operation)) = (plan.spawn_limit, &mut self.operation) {
            operation.deadline = operation.started_at.checked_add(limit).unwrap_or(Timestamp::MAX);
        }
    }

    pub(super) fn spawn_timed_out(&self) -> Failure {
        let waiting_for = match &self.stage {
            Some((_, _, message)) => format!(": {message}"),
            None => String::new(),
        };
        Failure::cluster("SpawnTimeout", format!("The lab was not ready in time{waiting_for}"))
    }
}

fn decide(effects: &mut Vec<Effect>) -> SpawnStep {
    publish(DECIDING, "Checking the request", effects);
    effects.push(Effect::EvaluatePolicy);
    SpawnStep::Deciding
}

fn publish(percent: u8, message: &str, effects: &mut Vec<Effect>) {
    effects.push(Effect::Publish(Entry::Progress(percent)));
    effects.push(Effect::Publish(Entry::Info(message.into())));
}

fn report(analysis: &Analysis, now: Timestamp) -> StageReport {
    StageReport {
        stage: analysis.stage,
        reason: analysis.reason.clone(),
        message: analysis.message.clone(),
        progress: percent(analysis.stage),
        at: now,
    }
}
