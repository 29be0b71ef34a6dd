//! Transitions of a lab that is being started.

use jiff::Timestamp;

use super::operation::after;
use super::{
    ClaimSizes, CreationNote, Effect, Failure, Lab, LabTimeLimits, Operation, Outcome, Phase, Presence,
    Request, Restarts, Running, SpawnStep, Starting, claim_still_being_deleted,
};
use crate::lifecycle::progress::{Entry, StageReport, percent};
use crate::lifecycle::stage::{Analysis, Finding, Severity, Stage};
use crate::names::spawn_key::SpawnKind;

/// Progress in percent while the policies are called.
const DECIDING: u8 = 5;
const CREATING: u8 = 10;

impl Lab {
    pub(super) fn on_spawn_accepted(&mut self, operation: Operation, effects: &mut Vec<Effect>) {
        if !matches!(
            self.phase,
            Phase::Absent | Phase::NamespaceKept(_) | Phase::CleaningUp(_) | Phase::Failed(_)
        ) {
            return;
        }
        self.limits = self.usual_limits;
        self.begin(operation, effects);
        if self.observed.is_nothing() && !self.in_flight.creates() {
            self.decide(effects);
        } else {
            let what = if matches!(self.phase, Phase::CleaningUp(_)) {
                format!("Waiting until the previous {} is gone", self.noun())
            } else {
                format!("Deleting objects of the previous {}", self.noun())
            };
            effects.push(Effect::Publish(Entry::Info(what)));
            self.enter(SpawnStep::Cleaning);
        }
    }

    pub(super) fn continue_cleaning(&mut self, gone: bool, effects: &mut Vec<Effect>) {
        if gone && matches!(self.phase, Phase::Starting(Starting { step: SpawnStep::Cleaning, .. })) {
            self.decide(effects);
        }
    }

    fn decide(&mut self, effects: &mut Vec<Effect>) {
        publish(DECIDING, "Checking the request", effects);
        self.enter(SpawnStep::Deciding);
    }

    /// Has the kept namespace replaced, and then the lab decided again.
    pub(super) fn replace_namespace(&mut self, effects: &mut Vec<Effect>) {
        if !self.is_at(SpawnStep::Deciding) {
            return;
        }
        let what = format!(
            "Waiting until the namespace of the previous {0} is gone, because this {0} needs another",
            self.noun()
        );
        effects.push(Effect::Publish(Entry::Info(what)));
        self.in_flight.forget(Request::Decide);
        self.give_up_namespace(effects);
        self.enter(SpawnStep::Cleaning);
    }

    fn enter(&mut self, step: SpawnStep) {
        let overdue = matches!(self.phase, Phase::Starting(Starting { overdue: true, .. }));
        self.waits_for = None;
        self.phase = Phase::Starting(Starting { step, overdue });
    }

    pub(super) fn is_at(&self, wanted: SpawnStep) -> bool {
        matches!(self.phase, Phase::Starting(Starting { step, .. }) if step == wanted)
    }

    pub(super) fn on_decided(
        &mut self,
        decision: Result<LabTimeLimits, Failure>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if !self.is_at(SpawnStep::Deciding) {
            return;
        }
        match decision {
            Ok(terms) => {
                self.set_time_limits(terms);
                publish(CREATING, &format!("Creating the {}'s resources", self.noun()), effects);
                self.enter(SpawnStep::Creating);
            }
            Err(failure) => self.fail(failure, now, effects),
        }
    }

    /// Waits for the environment that the policies have chosen. The wait is a stage of its own.
    pub(super) fn wait_for_environment(
        &mut self,
        terms: LabTimeLimits,
        what: String,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if !self.is_at(SpawnStep::Deciding) {
            return;
        }
        self.set_time_limits(terms);
        let progress = percent(Stage::Binding);
        let report =
            StageReport { stage: Stage::Binding, reason: "Binding".into(), message: what, progress, at: now };
        self.stage = Some((report.stage, report.reason.clone(), report.message.clone()));
        effects.push(Effect::Publish(Entry::Progress(progress)));
        effects.push(Effect::Publish(Entry::Info(report.message.clone())));
        effects.push(Effect::Publish(Entry::Stage(report)));
        self.enter(SpawnStep::Binding);
    }

    pub(super) fn on_bound(
        &mut self,
        result: Result<(), Failure>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if !self.is_at(SpawnStep::Binding) {
            return;
        }
        match result {
            Ok(()) => {
                self.in_flight.forget(Request::Decide);
                self.enter(SpawnStep::Deciding);
            }
            Err(failure) => self.fail(failure, now, effects),
        }
    }

    /// Tells the user about volume claims: that the creation waits for one, and which of them have another size than the
    /// lab asks for.
    pub(super) fn on_creation_noted(&mut self, note: CreationNote, effects: &mut Vec<Effect>) {
        let entry = match note {
            CreationNote::WaitsForClaim { name, kept_by } if self.is_at(SpawnStep::Creating) => {
                let message = format!("Waiting until the old volume {name} is deleted");
                self.stage = Some((Stage::Unknown, "OldVolume".to_owned(), message.clone()));
                self.waits_for = Some((name, kept_by));
                Entry::Info(message)
            }
            CreationNote::ClaimGone(name) if self.is_at(SpawnStep::Creating) => {
                self.waits_for = self.waits_for.take().filter(|(waits_for, _)| *waits_for != name);
                Entry::Info(format!("The old volume {name} is deleted"))
            }
            CreationNote::WaitsForClaim { .. } | CreationNote::ClaimGone(_) => return,
            CreationNote::ClaimGrows(ClaimSizes { name, from, to }) => {
                Entry::Info(format!("The volume {name} grows from {from} to {to}"))
            }
            CreationNote::ClaimNotGrown(ClaimSizes { name, from, to }, why) => {
                Entry::Error(format!("The volume {name} has {from} and not the {to} of this site: {why}"))
            }
        };
        let (Entry::Info(text) | Entry::Error(text)) = &entry else { return };
        // A note may come late. Of a lab that runs only errors are told.
        let is_told = match self.phase {
            Phase::Starting(_) => true,
            Phase::Running(_) => matches!(entry, Entry::Error(_)),
            _ => false,
        };
        if is_told && self.first_time("note", text) {
            effects.push(Effect::Publish(entry));
        }
    }

    /// Handles the end of a creation. A failed creation may have created objects, too, so they count as present until
    /// the cluster is observed.
    pub(super) fn on_created(
        &mut self,
        result: Result<(), Failure>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        self.observed.pod = self.observed.pod.max(Presence::Present);
        self.observed.rest = self.observed.rest.max(Presence::Present);
        if !self.is_at(SpawnStep::Creating) {
            return;
        }
        match result {
            Ok(()) => {
                let message = format!("Created the {}'s resources", self.noun());
                publish(percent(Stage::Scheduling) - 5, &message, effects);
                self.enter(SpawnStep::Waiting);
            }
            Err(failure) => self.fail(failure, now, effects),
        }
    }

    pub(super) fn observe_start(&mut self, analysis: &Analysis, now: Timestamp, effects: &mut Vec<Effect>) {
        self.publish_findings(&analysis.findings, effects);
        if self.observed.pod.is_missing() && analysis.stage == Stage::Unknown {
            let message = format!("The {} was deleted before it was ready", self.noun());
            return self.fail(Failure::cluster("PodDeleted", message), now, effects);
        }
        match analysis.stage {
            Stage::Running => self.become_running(analysis, now, effects),
            Stage::Failed | Stage::Stopped | Stage::Terminating => {
                self.fail(Failure::from_analysis(analysis), now, effects);
            }
            Stage::Scheduling | Stage::Pulling | Stage::Initializing | Stage::Starting => {
                let report = report(analysis, now);
                effects.push(Effect::Publish(Entry::Progress(report.progress)));
                effects.push(Effect::Publish(Entry::Stage(report)));
                if self.first_time("stage", &analysis.message) {
                    effects.push(Effect::Publish(Entry::Info(analysis.message.clone())));
                }
            }
            Stage::Binding | Stage::Unknown => {}
        }
    }

    fn become_running(&mut self, analysis: &Analysis, now: Timestamp, effects: &mut Vec<Effect>) {
        let mut restarts = Restarts::default();
        restarts.count(analysis.restarts, now);
        self.phase =
            Phase::Running(Running { ready_at: now, pod_uid: self.observed.pod_uid.clone(), restarts });
        effects.push(Effect::Publish(Entry::Stage(report(analysis, now))));
        effects.push(Effect::Publish(Entry::Progress(100)));
        // Only a lab with a pod of its own prepares the volumes of its user.
        if self.kind != SpawnKind::Injected {
            effects.push(Effect::MarkProvisioned);
        }
        effects.push(Effect::Finish(Outcome::Complete));
        effects.push(Effect::Publish(Entry::Complete(format!("The {} is ready", self.noun()))));
    }

    /// Publishes the cluster's findings, each once per operation.
    pub(super) fn publish_findings(&mut self, findings: &[Finding], effects: &mut Vec<Effect>) {
        for finding in findings {
            if self.first_time(&finding.reason, &finding.message) {
                let text = finding.message.clone();
                effects.push(Effect::Publish(match finding.severity {
                    Severity::Info => Entry::Info(text),
                    Severity::Warning | Severity::Critical => Entry::Error(text),
                }));
            }
        }
    }

    fn set_time_limits(&mut self, terms: LabTimeLimits) {
        if let Some(limit) = terms.delete_limit {
            self.limits.delete = limit;
        }
        if let (Some(limit), Some(operation)) = (terms.spawn_limit, &mut self.operation) {
            self.limits.spawn = limit;
            operation.deadline = after(operation.started_at, limit);
        }
    }

    pub(super) fn spawn_timed_out(&self) -> Failure {
        if let Some((name, kept_by)) = &self.waits_for {
            let why = claim_still_being_deleted(name, kept_by.as_deref());
            let message = format!("The {} was not ready in time: {why}", self.noun());
            return Failure::cluster("StillBeingDeleted", message);
        }
        let waiting_for = match (&self.stage, &self.observed.stuck) {
            (_, Some(detail)) if self.is_at(SpawnStep::Cleaning) => {
                format!(": objects of the previous {} are not deleted yet ({detail})", self.noun())
            }
            (Some((_, _, message)), _) => format!(": {message}"),
            _ => String::new(),
        };
        Failure::cluster("SpawnTimeout", format!("The {} was not ready in time{waiting_for}", self.noun()))
    }
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
