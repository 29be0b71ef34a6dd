//! What happened goes in; the next state and what to do come out.

use jiff::Timestamp;

use super::{Effect, Event, Failure, Lab, Observation, Phase, SpawnStep};

impl Lab {
    /// Takes one event in, at `now`, and answers what to do, in order.
    ///
    /// Total: an event that does not fit the state (a late answer, a repeated observation) changes nothing.
    pub fn step(&mut self, event: Event, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::SpawnAdmitted(operation) => self.begin_spawn(operation, &mut effects),
            Event::StopAdmitted(operation) => self.begin_stop(operation, &mut effects),
            Event::ReapBegun(operation, ending) => self.begin_reap(operation, ending, now, &mut effects),
            Event::Decided(decision) => self.on_decided(decision, now, &mut effects),
            Event::Applied(result) => self.on_applied(result, now, &mut effects),
            Event::Observed(observation) => self.on_observed(&observation, now, &mut effects),
            Event::DeleteRefused(failure) => self.on_delete_refused(failure, &mut effects),
            Event::Tick => self.on_tick(now, &mut effects),
            Event::Reconcile => self.retry_cleanup(now, &mut effects),
        }
        effects
    }

    fn on_applied(&mut self, result: Result<(), Failure>, now: Timestamp, effects: &mut Vec<Effect>) {
        if !std::mem::take(&mut self.applying) {
            return;
        }
        self.expect_objects();
        match (&self.phase, result) {
            (Phase::Starting(SpawnStep::Creating), Ok(())) => self.wait_for_pod(effects),
            (Phase::Starting(SpawnStep::Creating), Err(failure)) => self.fail(failure, now, effects),
            _ => self.advance_deletion(effects),
        }
    }

    fn on_observed(&mut self, observation: &Observation, now: Timestamp, effects: &mut Vec<Effect>) {
        self.pod = observation.pod;
        self.rest = observation.rest;
        let analysis = &observation.analysis;
        self.stage = Some((analysis.stage, analysis.reason.clone(), analysis.message.clone()));
        match self.phase {
            Phase::Starting(SpawnStep::Waiting) => self.observe_start(analysis, now, effects),
            Phase::Running => self.observe_running(analysis, effects),
            _ => self.advance_deletion(effects),
        }
    }

    /// Takes whatever deletion is under way as far as the cluster has come.
    fn advance_deletion(&mut self, effects: &mut Vec<Effect>) {
        match self.phase {
            Phase::Starting(SpawnStep::Cleaning(step)) => self.continue_cleaning(step, effects),
            Phase::Terminating(step) => self.continue_termination(step, effects),
            Phase::Failed { cleanup: Some(step), .. } => self.continue_cleanup(step, effects),
            Phase::Absent | Phase::Starting(_) | Phase::Running | Phase::Failed { cleanup: None, .. } => {}
        }
    }

    fn on_delete_refused(&mut self, failure: Failure, effects: &mut Vec<Effect>) {
        match &mut self.phase {
            Phase::Starting(SpawnStep::Cleaning(_)) | Phase::Terminating(_) => self.give_up(failure, effects),
            Phase::Failed { cleanup, .. } => *cleanup = None,
            Phase::Absent | Phase::Starting(_) | Phase::Running => {}
        }
    }

    fn on_tick(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match &mut self.phase {
            Phase::Starting(SpawnStep::Cleaning(_)) | Phase::Terminating(_) => {
                self.give_up(self.deletion_timed_out(), effects);
            }
            Phase::Starting(SpawnStep::Deciding) => {
                effects.push(Effect::CancelPolicy);
                self.fail(self.spawn_timed_out(), now, effects);
            }
            Phase::Starting(_) => self.fail(self.spawn_timed_out(), now, effects),
            Phase::Failed { cleanup, .. } => *cleanup = None,
            Phase::Absent | Phase::Running => {}
        }
    }
}
