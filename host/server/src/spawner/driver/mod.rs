//! The driver: one task owns one lab. It is the lab's only writer; everyone else watches.

mod effects;
mod telling;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::lab::{JobId, LabKey};
use wasmspawner_core::lifecycle::{
    Admission, Event, Lab, OperationKind, Phase, Presence, Refusal, admit_release, admit_spawn, admit_stop,
};
use wasmspawner_core::progress::OperationRecord;
use wasmspawner_core::volumes::Release;

use crate::spawner::errand::{self, Answer};
use crate::spawner::errors::SpawnError;
use crate::spawner::evaluate::{Approved, Decided};
use crate::spawner::labs::Labs;
use crate::spawner::live_log::LiveLog;
use crate::spawner::message::{Message, Seen};
use crate::spawner::place::Place;
use crate::spawner::recovered::Recovered;
use crate::spawner::site::Site;
use crate::spawner::snapshot::About;
use crate::spawner::view::View;
use crate::spawner::world::World;

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
    about: Arc<About>,
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
            about: Arc::default(),
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
        self.about = Arc::new(recovered.about);
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
        self.about = Arc::new(approved.about(&operation));
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
                self.about = Arc::clone(&decided.about);
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
}
