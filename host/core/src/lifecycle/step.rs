//! The transition function: takes an event, changes the state, and returns effects.

use jiff::Timestamp;

use super::{
    Effect, Event, Failed, Failure, Lab, Observed, Phase, Presence, Request, RestartPolicy, SpawnStep,
};

impl Lab {
    /// Handles one event at `now` and returns its effects in order.
    ///
    /// An event that does not fit the state (a late answer, a repeated observation) changes nothing.
    pub fn step(&mut self, event: Event, policy: RestartPolicy, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::SpawnAccepted(operation) => self.on_spawn_accepted(operation, &mut effects),
            Event::StopAccepted(operation) => self.begin_stop(operation, now, &mut effects),
            Event::CleanupBegun(operation, ending) => {
                self.begin_cleanup(operation, ending, now, &mut effects);
            }
            Event::Decided(decision) => self.on_decided(decision, now, &mut effects),
            Event::EnvironmentNeeded(terms, what) => {
                self.wait_for_environment(terms, what, now, &mut effects);
            }
            Event::NamespaceDiffers => self.replace_namespace(&mut effects),
            Event::Bound(result) => self.on_bound(result, now, &mut effects),
            Event::CreationNoted(note) => self.on_creation_noted(note, &mut effects),
            Event::Created(result) => self.on_created(result, now, &mut effects),
            Event::Observed(observed) => self.on_observed(*observed, policy, now, &mut effects),
            Event::Read(observed) => {
                self.on_observed(*observed, policy, now, &mut effects);
                self.decide_overdue(now, &mut effects);
            }
            Event::RestDeletionAccepted => {
                self.observed.rest = self.observed.rest.min(Presence::Terminating);
                self.advance_deletion(now, &mut effects);
            }
            Event::RequestFailed(failure) => self.on_request_failed(&failure, &mut effects),
            Event::Tick => self.on_tick(now, &mut effects),
        }
        effects
    }

    fn on_observed(
        &mut self,
        observed: Observed,
        policy: RestartPolicy,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let before = self.observed.presences();
        self.observed = observed;
        if self.observed.children.is_missing() {
            self.in_flight.on_effect_observed(Request::StopChildren);
        }
        if !self.observed.is_unsized {
            self.in_flight.on_effect_observed(Request::SizePool);
        }
        if self.observed.pod.is_missing() {
            self.in_flight.on_effect_observed(Request::DeletePod);
        }
        if self.observed.rest.is_missing() {
            self.in_flight.on_effect_observed(Request::DeleteRest);
        }
        let analysis = self.observed.analysis.clone();
        let waits_for_claim = self.is_at(SpawnStep::Creating) && self.waits_for.is_some();
        if !self.is_at(SpawnStep::Binding) && !waits_for_claim {
            self.stage = Some((analysis.stage, analysis.reason.clone(), analysis.message.clone()));
        }
        self.note_progress(before, now);
        match &self.phase {
            Phase::Starting(starting) if starting.step == SpawnStep::Waiting => {
                self.observe_start(&analysis, now, effects);
            }
            Phase::Running(_) => {
                self.observe_running(&analysis, policy, now, effects);
                self.show_restarts(&analysis);
            }
            _ => self.advance_deletion(now, effects),
        }
    }

    /// Decides on an overdue operation, after the cluster was read once more.
    fn decide_overdue(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        if self.is_overdue() {
            let failure = match self.phase {
                Phase::Stopping(_) => self.deletion_timed_out(),
                _ => self.spawn_timed_out(),
            };
            self.fail(failure, now, effects);
        }
    }

    fn on_tick(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let deadline = self.operation.map(|operation| operation.deadline);
        match &mut self.phase {
            Phase::Starting(starting) => starting.overdue |= deadline.is_some_and(|deadline| now >= deadline),
            Phase::Stopping(deletion) => deletion.expire(now),
            Phase::NamespaceKept(kept) if now >= kept.until => self.delete_kept_namespace(now, effects),
            Phase::Absent
            | Phase::NamespaceKept(_)
            | Phase::Running(_)
            | Phase::CleaningUp(_)
            | Phase::Failed(_) => {}
        }
    }

    /// Removes a failed lab that failed before `before` and has no objects left. Returns true if the lab was removed.
    pub fn forget_failure(&mut self, before: Timestamp, now: Timestamp) -> bool {
        let forget =
            matches!(&self.phase, Phase::Failed(Failed { at, .. }) if *at < before) && self.is_settled();
        if forget {
            self.phase = self.ended(now);
        }
        forget
    }

    /// Handles a request whose answer was lost because its task failed.
    pub fn lost(&mut self, request: Request, policy: RestartPolicy, now: Timestamp) -> Vec<Effect> {
        self.in_flight.answered(request, now);
        let message = "The service failed; its administrators find the reason in its log";
        let failure = Failure::service("InternalError", message);
        match request {
            Request::Decide => self.step(Event::Decided(Err(failure)), policy, now),
            Request::Bind => self.step(Event::Bound(Err(failure)), policy, now),
            Request::Create => self.step(Event::Created(Err(failure)), policy, now),
            _ => Vec::new(),
        }
    }
}
