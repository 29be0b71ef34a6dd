//! The driver: one task owns one lab. It is the lab's only writer; everyone else watches.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use wasmspawner_core::lab::{JobId, LabKey};
use wasmspawner_core::lifecycle::{
    Admission, Effect, Event, Lab, Operation, OperationKind, Outcome, Phase, Presence, Refusal,
    admit_release, admit_spawn, admit_stop,
};
use wasmspawner_core::progress::{Entry, LoggedEntry, OperationRecord, ProgressLog};
use wasmspawner_core::volumes::Release;

use super::errand::{self, Answer};
use super::errors::SpawnError;
use super::evaluate::{Approved, Decided};
use super::labs::Labs;
use super::live_log::LiveLog;
use super::message::{Message, Seen};
use super::place::Place;
use super::recovered::Recovered;
use super::site::Site;
use super::snapshot::{About, LabSnapshot};
use super::tally::count;
use super::view::View;
use super::world::World;

/// How long a lab that is gone can still be asked for its last events.
const LINGER: Duration = Duration::from_mins(10);

/// Owns one lab.
pub(super) struct Driver {
    key: LabKey,
    site: Arc<Site>,
    labs: Labs,
    lab: Lab,
    world: World,
    place: Option<Place>,
    about: About,
    approved: Option<Arc<Approved>>,
    decided: Option<Arc<Decided>>,
    log: Option<Arc<LiveLog>>,
    record: Option<OperationRecord>,
    errands: JoinSet<(Option<JobId>, Answer)>,
    deletions: Vec<AbortHandle>,
    evaluation: Option<AbortHandle>,
    cancel_apply: CancellationToken,
    spawn_slot: Option<OwnedSemaphorePermit>,
    recheck_at: Option<Timestamp>,
    over_since: Option<Instant>,
    inbox: mpsc::UnboundedReceiver<Message>,
    view: watch::Sender<View>,
}

impl Driver {
    pub(super) fn new(
        key: LabKey,
        site: Arc<Site>,
        labs: Labs,
        inbox: mpsc::UnboundedReceiver<Message>,
        view: watch::Sender<View>,
    ) -> Self {
        let lab = Lab::absent(site.time_limits());
        Self {
            key,
            site,
            labs,
            lab,
            world: World::default(),
            place: None,
            about: About::default(),
            approved: None,
            decided: None,
            log: None,
            record: None,
            errands: JoinSet::new(),
            deletions: Vec::new(),
            evaluation: None,
            cancel_apply: CancellationToken::new(),
            spawn_slot: None,
            recheck_at: None,
            over_since: None,
            inbox,
            view,
        }
    }

    /// Takes over a lab that a restart found.
    pub(super) fn adopt(mut self, recovered: Recovered) -> Self {
        self.lab = recovered.lab;
        self.world = recovered.world;
        self.place = Some(recovered.place);
        self.about = recovered.about;
        self.log = Some(LiveLog::new(recovered.log));
        self.record = recovered.record;
        // Before the service says that it is ready, so that nobody hears that this lab does not exist.
        self.publish();
        self
    }

    /// Runs until the lab is gone and nobody asks for it any more.
    pub(super) async fn run(mut self) {
        if self.place.is_some() {
            self.interrupted();
            self.observe();
        }
        loop {
            let wake = self.wake_in();
            tokio::select! {
                message = self.inbox.recv() => match message {
                    Some(message) => self.receive(message),
                    None => return,
                },
                Some(answer) = self.errands.join_next() => self.hear(answer),
                () = tokio::time::sleep(wake) => self.wake(),
            }
            if self.has_lingered() && self.labs.retire(&self.key, &self.inbox) {
                return;
            }
        }
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Spawn(approved, reply) => {
                // Nobody may be waiting any more; the lab starts all the same.
                let _ = reply.send(self.spawn(*approved));
            }
            Message::Stop(reply) => {
                let _ = reply.send(self.stop());
            }
            Message::Release(reply) => self.release(reply),
            Message::Seen(seen) => self.see(seen),
            Message::Reconcile => self.feed(Event::Reconcile),
        }
    }

    fn spawn(&mut self, approved: Approved) -> Result<(), Refusal> {
        let slot = Arc::clone(&self.site.spawn_slots).try_acquire_owned().ok();
        admit_spawn(&self.lab, slot.is_some())?;
        let operation = self.site.operation(OperationKind::Spawn);
        self.spawn_slot = slot;
        self.about = approved.about(&operation);
        self.place = Some(Place::of(&approved.names));
        self.labs.settle(&self.key, approved.names.namespace.as_str());
        self.approved = Some(Arc::new(approved));
        self.world.forget_events();
        self.feed(Event::SpawnAdmitted(operation));
        Ok(())
    }

    fn stop(&mut self) -> Result<(), Refusal> {
        if admit_stop(&self.lab)? == Admission::Begin {
            self.feed(Event::StopAdmitted(self.site.operation(OperationKind::Stop)));
        }
        Ok(())
    }

    fn release(&mut self, reply: oneshot::Sender<Result<Release, SpawnError>>) {
        match admit_release(&self.lab) {
            Ok(()) => {
                self.send(errand::release(Arc::clone(&self.site), self.key.clone(), reply));
            }
            Err(refusal) => {
                let _ = reply.send(Err(refusal.into()));
            }
        }
    }

    fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Pod(pod) => self.world.see_pod(pod),
            Seen::PodGone(uid) => self.world.lose_pod(uid.as_deref()),
            Seen::Rest(rest) => self.world.see_rest(rest),
            Seen::Event(event) => {
                let ours = self.place.as_ref().is_some_and(|place| place.concerns(&event));
                if !ours {
                    return;
                }
                self.world.see_event(*event);
            }
        }
        self.observe();
    }

    fn hear(&mut self, answer: Result<(Option<JobId>, Answer), tokio::task::JoinError>) {
        let answer = match answer {
            // What an operation that is over asked for says nothing about this one; but a creation that ends is heard.
            Ok((job_id, answer)) if job_id != self.job_id() && !matches!(answer, Answer::Applied(_)) => {
                return;
            }
            Ok((_, answer)) => Ok(answer),
            Err(error) => Err(error),
        };
        match answer {
            Ok(Answer::Decided(Ok(decided))) => {
                let plan = decided.plan();
                self.about = decided.about.clone();
                self.decided = Some(Arc::new(*decided));
                self.feed(Event::Decided(Ok(plan)));
            }
            Ok(Answer::Decided(Err(failure))) => self.feed(Event::Decided(Err(failure))),
            Ok(Answer::Applied(result)) => {
                match &result {
                    Ok(pod) => self.world.created(pod.clone()),
                    Err(_) => self.world.may_have_created(),
                }
                self.feed(Event::Applied(result.map(drop)));
                self.observe();
            }
            Ok(Answer::PodIsGone) => self.see(Seen::PodGone(None)),
            Ok(Answer::RestIsGone) => self.see(Seen::Rest(Presence::Missing)),
            Ok(Answer::DeleteRefused(failure)) => self.feed(Event::DeleteRefused(failure)),
            Ok(Answer::Nothing) => {}
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                tracing::error!(%error, "an errand of a lab's driver panicked");
                self.feed(errand::lost(&self.lab.phase));
            }
        }
    }

    fn observe(&mut self) {
        let observation = self.world.observe(&self.site.stage_policy(), Timestamp::now());
        self.recheck_at = observation.analysis.recheck_at;
        self.feed(Event::Observed(observation));
    }

    fn wake(&mut self) {
        let now = Timestamp::now();
        if self.recheck_at.is_some_and(|at| now >= at) {
            self.recheck_at = None;
            self.observe();
        }
        self.feed(Event::Tick);
    }

    /// Until the next thing that time alone brings.
    fn wake_in(&self) -> Duration {
        let now = Timestamp::now();
        let next = [self.lab.deadline(), self.recheck_at].into_iter().flatten().min();
        // A moment late rather than early: a timer that fires early would be set again at once.
        next.map_or(LINGER, |at| {
            Duration::try_from(at.duration_since(now)).unwrap_or_default() + Duration::from_millis(1)
        })
    }

    /// True when the lab has been gone for long enough, whatever else was heard meanwhile.
    fn has_lingered(&mut self) -> bool {
        if self.lab.phase == Phase::Absent && self.errands.is_empty() {
            self.over_since.get_or_insert_with(Instant::now).elapsed() >= LINGER
        } else {
            self.over_since = None;
            false
        }
    }

    fn job_id(&self) -> Option<JobId> {
        self.lab.operation.map(|operation| operation.job_id)
    }

    fn feed(&mut self, event: Event) {
        let effects = self.lab.step(event, Timestamp::now());
        self.publish();
        for effect in effects {
            self.carry_out(effect);
        }
        if !matches!(self.lab.phase, Phase::Starting(_)) {
            self.spawn_slot = None;
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Begin(operation) => self.begin(&operation),
            Effect::Publish(entry) => self.say(entry),
            Effect::Finish(outcome) => self.finish(&outcome),
            Effect::EvaluatePolicy => {
                // Nothing is left to delete: a request that is still under way must not meet the next lab.
                self.deletions.drain(..).for_each(|deletion| deletion.abort());
                if let (Some(approved), Some(operation)) = (self.approved.take(), self.lab.operation) {
                    self.evaluation =
                        Some(self.send(errand::evaluate(Arc::clone(&self.site), approved, operation)));
                }
            }
            Effect::CancelPolicy => {
                if let Some(evaluation) = self.evaluation.take() {
                    evaluation.abort();
                }
            }
            Effect::Apply => {
                self.cancel_apply = CancellationToken::new();
                if let (Some(decided), Some(operation)) = (self.decided.take(), self.lab.operation) {
                    let cancel = self.cancel_apply.clone();
                    self.send(errand::apply(Arc::clone(&self.site), decided, operation, cancel));
                }
            }
            Effect::CancelApply => self.cancel_apply.cancel(),
            Effect::DeletePod => {
                if let (Some(place), Some(operation)) = (self.place.clone(), self.lab.operation) {
                    let deletion = self.send(errand::delete_pod(Arc::clone(&self.site), place, operation));
                    self.deletions.push(deletion);
                }
            }
            Effect::DeleteRest => {
                if let (Some(place), Some(operation)) = (self.place.clone(), self.lab.operation) {
                    let (site, key) = (Arc::clone(&self.site), self.key.clone());
                    let deletion = self.send(errand::delete_rest(site, key, place, operation));
                    self.deletions.push(deletion);
                }
            }
            Effect::MarkProvisioned => {
                self.send(errand::mark_provisioned(Arc::clone(&self.site), self.key.clone()));
            }
        }
    }

    fn send(&mut self, errand: impl Future<Output = Answer> + Send + 'static) -> AbortHandle {
        let job_id = self.job_id();
        let told = job_id.map(|job_id| job_id.to_string());
        let span =
            tracing::info_span!("lab", user = %self.key.user, server = %self.key.server, job_id = told);
        self.errands.spawn(async move { (job_id, errand.await) }.instrument(span))
    }

    fn begin(&mut self, operation: &Operation) {
        let record = OperationRecord::begin(self.key.clone(), operation);
        self.site.history.put(&record);
        self.record = Some(record);
        self.log = Some(LiveLog::new(ProgressLog::new(operation.job_id)));
        self.publish();
    }

    fn say(&mut self, entry: Entry) {
        let Some(log) = &self.log else { return };
        let is_last = entry.is_last();
        let now = Timestamp::now();
        // The record is complete before anybody is told that the operation is over.
        if is_last && let Some(mut record) = self.record.take() {
            record.note(&LoggedEntry { number: log.next_number(), at: now, entry: entry.clone() });
            self.site.history.put(&record);
        }
        if let Some(logged) = log.append(entry, now)
            && let Some(record) = &mut self.record
        {
            record.note(&logged);
        }
        self.publish();
    }

    fn finish(&mut self, outcome: &Outcome) {
        let Some(record) = &mut self.record else { return };
        record.end(outcome.clone(), Timestamp::now());
        count(&self.site.metrics, record, outcome);
        tracing::info!(user = %self.key.user, server = %self.key.server, job_id = %record.job_id, kind = ?record.kind, ?outcome, "operation ended");
    }

    /// A spawn that a restart cut short has nobody who says so but its successor.
    fn interrupted(&mut self) {
        if let Some(failure) = self.lab.failure().cloned() {
            self.finish(&Outcome::Failed(failure.clone()));
            self.say(Entry::Failed(failure.message));
            self.feed(Event::Reconcile);
        }
    }

    fn publish(&mut self) {
        let snapshot = self.lab.status().map(|status| Arc::new(self.snapshot(status)));
        let footprint = self.world.footprint(self.place.as_ref().map(|place| place.namespace.as_str()));
        self.view.send_replace(View { snapshot, log: self.log.clone(), footprint });
    }

    fn snapshot(&self, status: wasmspawner_core::lifecycle::LabStatus) -> LabSnapshot {
        let failure = self.lab.failure();
        let stage = self.lab.stage();
        LabSnapshot {
            key: self.key.clone(),
            status,
            pod: self.lab.pod_presence(),
            about: self.about.clone(),
            url: self.world.pod().and_then(|pod| Place::url(pod, &self.site.config.lab.config)),
            stage: stage.map(|(stage, _, _)| stage),
            reason: failure
                .map(|failure| failure.reason.clone())
                .or(stage.map(|(_, reason, _)| reason.to_owned())),
            message: failure
                .map(|failure| failure.message.clone())
                .or(stage.map(|(_, _, text)| text.to_owned())),
            progress: self.log.as_ref().map_or(0, |log| log.progress()),
            job_id: self.job_id(),
        }
    }
}
