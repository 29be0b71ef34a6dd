//! The driver: one task per lab, which is the only writer of the lab's state. All others only read it.
//!
//! The driver is a loop: it receives an event, the lab's state machine takes a step, the effects of the step are
//! carried out and published, and the next requests are planned from the new state.

pub(crate) mod bind;
pub(crate) mod drivers;
pub(crate) mod place_observer;
pub(crate) mod recover;
pub(crate) mod requests;
pub(crate) mod workload_observer;

mod accept;
mod place;
mod pool;
mod publish;
mod tasks;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;
use wasmspawner_core::config::EnvironmentChoice;
use wasmspawner_core::custom_resource::environment::ClusterRef;
use wasmspawner_core::lifecycle::progress::Entry;
use wasmspawner_core::lifecycle::stage::StagePolicy;
use wasmspawner_core::lifecycle::{
    Effect, Event, Lab, LabStatus, Observed, OperationKind, Phase, Request, SpawnStep, admit_release,
};
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::record::volumes::Release;
use wasmspawner_core::values::digest::Digest;

use self::place_observer::PlaceObserver;
use self::requests::TaskResult;
use crate::context::Context;
use crate::decide::Decided;
use crate::decide::approve::Approved;
use crate::errors::SpawnError;
use crate::labs::Labs;
use crate::labs::message::{Message, Waiting};
use crate::published::live_log::LiveLog;
use crate::published::snapshot::LabDetails;
use crate::published::view::View;
use wasmspawner_history::HistoryEntry;
use wasmspawner_kubernetes::k8s::reached;
use wasmspawner_kubernetes::records::StoredSpawn;

/// The time for which the last events of a lab can still be read from its driver after the lab is gone.
const LINGER: Duration = Duration::from_mins(10);

/// The time for which a failed child is listed. By then, its client has read the reason. It is limited because a user
/// may start many children.
const FAILED_CHILD_KEPT: SignedDuration = SignedDuration::from_mins(10);

/// The driver of one lab, or of one child of a lab.
pub(crate) struct Driver {
    pub(crate) key: SpawnKey,
    pub(crate) context: Arc<Context>,
    pub(crate) labs: Labs,
    pub(crate) lab: Lab,
    /// The lab's record, as it was last written or read.
    pub(crate) record: Option<StoredSpawn>,
    /// The spawn that was refused because it was not known whether its record had been written.
    unanswered: Option<JobId>,
    /// The name of the caller who asked for the operation under way.
    pub(crate) requested_by: Option<String>,
    /// The observer of the lab's place in the cluster; `None` before the first spawn.
    pub(crate) observer: Option<PlaceObserver>,
    pub(crate) about: Arc<LabDetails>,
    /// The result of preparing the spawn under way, so far.
    pub(crate) preparation: Preparation,
    pub(crate) log: Option<Arc<LiveLog>>,
    /// The record of the operation under way, or of the last one while the lab runs.
    pub(crate) history: Option<HistoryEntry>,
    /// The operation under way, for traces.
    span: Span,
    tasks: JoinSet<TaskResult>,
    asked: HashMap<tokio::task::Id, (Request, AbortHandle)>,
    cancel_create: CancellationToken,
    spawn_slot: Option<OwnedSemaphorePermit>,
    /// True while the record of a new spawn is being written.
    accepting: bool,
    /// True for a failed lab that is to be forgotten as soon as no object of it is left.
    forgotten: bool,
    /// The time of day at which the analysis of the pod may change by the passing of time alone.
    recheck_at: Option<Timestamp>,
    again_at: Option<Timestamp>,
    over_since: Option<Instant>,
    inbox: mpsc::UnboundedReceiver<Box<Message>>,
    view: watch::Sender<View>,
}

/// The stage that the preparation of a spawn has reached.
pub(crate) enum Preparation {
    /// No spawn is under way, or its objects have been created.
    Nothing,
    /// A process that has gone has accepted the spawn. Its request, with this digest, is in the lab's Secret.
    CutOff(Digest),
    /// The policies have approved the request.
    Approved(Arc<Approved>),
    /// The lab has to get this environment, and is then decided again.
    Binding(Arc<Approved>, EnvironmentChoice),
    /// The objects are decided and not created yet.
    Decided(Arc<Decided>),
}

impl Driver {
    pub(crate) fn new(
        key: SpawnKey,
        context: Arc<Context>,
        labs: Labs,
        inbox: mpsc::UnboundedReceiver<Box<Message>>,
        view: watch::Sender<View>,
    ) -> Self {
        let lab = Lab::absent(context.time_limits()).of_kind(key.kind());
        Self {
            key,
            context,
            labs,
            lab,
            record: None,
            unanswered: None,
            requested_by: None,
            observer: None,
            about: Arc::default(),
            preparation: Preparation::Nothing,
            log: None,
            history: None,
            span: Span::none(),
            tasks: JoinSet::new(),
            asked: HashMap::new(),
            cancel_create: CancellationToken::new(),
            spawn_slot: None,
            accepting: false,
            forgotten: false,
            recheck_at: None,
            again_at: None,
            over_since: None,
            inbox,
            view,
        }
    }

    /// Runs until the lab is gone and nobody has asked for it for `LINGER`.
    pub(crate) async fn run(mut self: Box<Self>) {
        self.observe();
        loop {
            let wake = self.wake_in();
            tokio::select! {
                message = self.inbox.recv() => match message {
                    // Boxed for the duration of the call, to keep the task small: there are as many of these tasks as
                    // labs.
                    Some(message) => Box::pin(self.receive(*message)).await,
                    None => return,
                },
                Some(done) = self.tasks.join_next_with_id() => self.on_task_done(done),
                () = changed(self.observer.as_ref()) => self.observe(),
                () = tokio::time::sleep(wake) => self.wake(),
            }
            self.forget_if_asked();
            if self.may_retire() && self.labs.retire(&self.key, &self.inbox) {
                return;
            }
        }
    }

    async fn receive(&mut self, message: Message) {
        match message {
            Message::Spawn(approved, Waiting { until, reply, cause, turn }) => {
                // The caller may have stopped waiting; the lab starts all the same.
                let answer = cause.during(self.accept_spawn(approved, until)).await;
                drop(turn);
                let _ = reply.send(answer);
            }
            Message::Stop(request, Waiting { until, reply, cause, .. }) => {
                let _ = reply.send(cause.during(self.accept_stop(request, until)).await);
            }
            Message::Release(reply) => self.release(reply),
            Message::Record(stored) => self.on_record(*stored).await,
            Message::Scale(resize, Waiting { until, reply, cause, turn }) => {
                let answer = cause.during(self.accept_scale(resize, until)).await;
                drop(turn);
                let _ = reply.send(answer);
            }
            Message::ChildChanged => self.observe(),
            Message::PoolChanged => {
                // Earlier attempts must not delay the new number of workers.
                self.lab.in_flight.on_effect_observed(Request::SizePool);
                self.observe();
            }
            Message::ClusterAway(cluster, away) => self.publish_cluster_away(cluster.as_ref(), away),
            Message::Env { spawn, env } => self.learn_env(&spawn, env),
            Message::CreationNoted(job_id, note) => {
                if self.job_id() == job_id {
                    self.on_event(Event::CreationNoted(note));
                }
            }
            Message::Housekeeping => self.forget_old_failure(),
            Message::ForgetFailure => self.forgotten = true,
        }
        self.follow_record().await;
        self.start_planned_requests();
    }

    /// Takes a step for an event and plans the next requests.
    pub(crate) fn on_event(&mut self, event: Event) {
        let effects = self.lab.step(event, self.context.restart_policy(), self.context.now());
        self.carry_out(effects);
        self.start_planned_requests();
    }

    pub(crate) fn carry_out(&mut self, effects: Vec<Effect>) {
        let says_more = !effects.is_empty();
        // The lab's state is published before its events, so that it is never behind them.
        self.publish();
        for effect in effects {
            match effect {
                Effect::Begin(operation) => self.begin(&operation),
                Effect::Publish(entry) => self.publish_entry(entry),
                Effect::Finish(outcome) => {
                    self.finish(&outcome);
                    self.span = Span::none();
                    if matches!(self.lab.phase, Phase::Failed(_)) {
                        self.keep_little();
                    }
                }
                Effect::Restarted(count) if self.key.is_lab() => {
                    self.context.metrics.labs_restarted(count);
                    // The new Jupyter server does not know the kernels of the previous one.
                    let (labs, lab) = (self.labs.clone(), self.key.lab.clone());
                    tokio::spawn(async move { labs.stop_children(&lab).await });
                }
                Effect::Restarted(_) => {}
                Effect::Cleanup(ending) => {
                    self.requested_by = None;
                    let operation = self.context.operation(OperationKind::Cleanup, self.lab.limits());
                    let event = Event::CleanupBegun(operation, ending);
                    let effects = self.lab.step(event, self.context.restart_policy(), self.context.now());
                    self.carry_out(effects);
                }
                Effect::GiveUpNamespace => {
                    if let Some(observer) = &mut self.observer {
                        observer.give_up_namespace();
                    }
                }
                Effect::MarkProvisioned => {
                    let (context, key) = (Arc::clone(&self.context), self.key.lab.clone());
                    tokio::spawn(async move { requests::mark_provisioned(&context, &key).await });
                }
            }
        }
        if says_more {
            self.publish();
        }
        if !matches!(self.lab.phase, Phase::Starting(_)) {
            self.spawn_slot = None;
            self.preparation = Preparation::Nothing;
            if let Some(observer) = &mut self.observer {
                observer.drop_events();
            }
        }
    }

    /// Observes the lab in the cluster, and takes a step for the observation.
    pub(crate) fn observe(&mut self) {
        let kept = match &self.lab.phase {
            Phase::Running(running) => running.pod_uid.clone(),
            _ => None,
        };
        let operation = self.job_id();
        if let Some(observer) = &mut self.observer {
            observer.set_lab(operation, kept.as_deref());
        }
        if let Some(observer) = &self.observer {
            reached(|| {
                format!("observe {} {}", self.lab.status().map_or("absent", LabStatus::as_str), self.key)
            });
            let mut observed = observer.observe(&self.stage_policy(), Timestamp::now());
            self.observe_children(&mut observed);
            let of_workers = self.observe_workers(&mut observed);
            self.recheck_at = observed.analysis.recheck_at.into_iter().chain(of_workers).min();
            self.record_findings(&observed.analysis.findings);
            self.on_event(Event::Observed(Box::new(observed)));
        } else {
            self.start_planned_requests();
        }
    }

    /// Adds the children of a lab to an observation.
    pub(crate) fn observe_children(&self, observed: &mut Observed) {
        if self.key.is_lab() {
            observed.children = self.labs.children_of(&self.key.lab);
        }
    }

    pub(crate) fn stage_policy(&self) -> StagePolicy {
        StagePolicy {
            kind: self.key.kind(),
            was_ready: matches!(self.lab.phase, Phase::Running(_)),
            ..self.context.stage_policy()
        }
    }

    fn wake(&mut self) {
        if self.recheck_at.is_some_and(|at| Timestamp::now() >= at) {
            self.recheck_at = None;
            self.observe();
        }
        self.on_event(Event::Tick);
    }

    /// The time until the earliest of the timers.
    fn wake_in(&self) -> Duration {
        let until = |at: Option<Timestamp>, now: Timestamp| {
            at.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default())
        };
        let next = [until(self.recheck_at, Timestamp::now()), until(self.again_at, self.context.now())];
        // A millisecond is added because a timer that fires early would be set again at once.
        next.into_iter().flatten().min().map_or(LINGER, |wait| wait + Duration::from_millis(1))
    }

    /// Tells the readers of an operation under way that the cluster cannot be reached, or can be reached again.
    fn publish_cluster_away(&mut self, cluster: Option<&ClusterRef>, away: bool) {
        let of_place = self.observer.as_ref().and_then(|observer| observer.place().kind.cluster());
        if of_place != cluster {
            return;
        }
        if matches!(self.lab.phase, Phase::Starting(_) | Phase::Stopping(_)) {
            self.publish_entry(if away {
                Entry::Error("The cluster cannot be reached; this goes on as soon as it can".into())
            } else {
                Entry::Info("The cluster can be reached again".into())
            });
        }
    }

    /// Takes over the environment variables that were read from the cluster.
    fn learn_env(&mut self, spawn: &str, read: BTreeMap<String, String>) {
        if self.observer.as_ref().is_some_and(|observer| observer.spawn() == spawn) {
            let mut about = LabDetails::clone(&self.about);
            for (name, value) in read {
                about.env.entry(name).or_insert(value);
            }
            self.about = Arc::new(about);
            self.publish();
        }
    }

    /// Drops the request of a failed lab, because it may be large. Also drops the oldest failed labs of a user who has
    /// many.
    fn keep_little(&mut self) {
        self.about = Arc::new(self.about.without_request());
        self.publish();
        self.labs.forget_oldest_failures(&self.key.lab.user);
    }

    /// Removes a failed lab once it was kept for long enough (`failed_kept`).
    fn forget_old_failure(&mut self) {
        let kept = self.context.config.current().limits.failed_kept;
        let kept = if self.key.is_lab() { kept } else { kept.min(FAILED_CHILD_KEPT) };
        if let Ok(before) = self.context.now().checked_sub(kept) {
            self.forget_failure(before);
        }
    }

    /// Removes a failed lab whose user has many of them, once no object of it is left.
    fn forget_if_asked(&mut self) {
        if self.forgotten {
            self.forget_failure(Timestamp::MAX);
            self.forgotten = matches!(self.lab.phase, Phase::Failed(_));
        }
    }

    /// Removes a lab that failed before this time, once no object of it is left.
    fn forget_failure(&mut self, before: Timestamp) {
        if self.lab.forget_failure(before, self.context.now()) {
            self.publish();
        }
    }

    fn release(&mut self, reply: oneshot::Sender<Result<Release, SpawnError>>) {
        match admit_release(&self.lab) {
            Ok(()) => {
                let (context, key) = (Arc::clone(&self.context), self.key.lab.clone());
                tokio::spawn(async move { reply.send(requests::release(&context, &key).await) });
            }
            Err(refusal) => {
                let _ = reply.send(Err(refusal.into()));
            }
        }
    }

    /// True when the lab has been gone for `LINGER`.
    fn may_retire(&mut self) -> bool {
        if self.lab.phase == Phase::Absent && self.record.is_none() && self.asked.is_empty() {
            self.over_since.get_or_insert_with(Instant::now).elapsed() >= LINGER
        } else {
            self.over_since = None;
            false
        }
    }

    pub(crate) fn is_creating(&self) -> bool {
        self.accepting
            || self.lab.in_flight.awaits(Request::Bind)
            || self.lab.in_flight.awaits(Request::Create)
            || matches!(&self.lab.phase, Phase::Starting(starting) if starting.step != SpawnStep::Waiting)
    }

    pub(crate) fn job_id(&self) -> Option<JobId> {
        self.lab.operation.map(|operation| operation.job_id)
    }
}

async fn changed(observer: Option<&PlaceObserver>) {
    match observer {
        Some(observer) => observer.changed().await,
        None => std::future::pending().await,
    }
}
