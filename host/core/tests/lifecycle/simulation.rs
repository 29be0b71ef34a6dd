//! A simulated cluster, policy engine and driver for the state machine.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use wasmspawner_core::lifecycle::progress::{Entry, LoggedEntry, ProgressLog};
use wasmspawner_core::lifecycle::stage::{Analysis, Stage};
use wasmspawner_core::lifecycle::{
    Admission, Effect, Event, Failure, Lab, LabStatus, LabTimeLimits, Observed, Operation, OperationKind,
    Outcome, Phase, Presence, RecordState, Request, RestartPolicy, TimeLimits, admit_spawn, admit_stop, plan,
};
use wasmspawner_core::names::lab::JobId;

use crate::act::Act;

pub(crate) const LIMITS: TimeLimits =
    TimeLimits { spawn: SignedDuration::from_secs(600), delete: SignedDuration::from_secs(60) };
pub(crate) const KEPT_FOR: SignedDuration = SignedDuration::from_mins(10);
pub(crate) const RESTARTS: RestartPolicy =
    RestartPolicy { allowed: 3, window: SignedDuration::from_mins(10) };

/// A simulated cluster, policy engine and driver. The requests under way are in the lab's own `in_flight`.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact about the simulation")]
pub(crate) struct Simulation {
    pub(crate) lab: Lab,
    pub(crate) now: Timestamp,
    pub(crate) log: ProgressLog,
    pub(crate) pod: Presence,
    pub(crate) rest: Presence,
    /// The lab's own namespace, if that is kept after a lab.
    pub(crate) namespace: Presence,
    keeps_namespace: bool,
    given_up: bool,
    pub(crate) children: Presence,
    pub(crate) stage: Stage,
    restarts: u32,
    /// True while requests that change the cluster are answered and have their effect.
    cluster_works: bool,
    /// True while the observed state of the cluster reaches the lab.
    pub(crate) watch_works: bool,
    operations: u128,
    pub(crate) open_record: bool,
    stopped: bool,
    was_ready: bool,
}

impl Simulation {
    pub(crate) fn new() -> Self {
        Self {
            lab: Lab::absent(LIMITS),
            now: Timestamp::UNIX_EPOCH,
            log: ProgressLog::new(job(0)),
            pod: Presence::Missing,
            rest: Presence::Missing,
            namespace: Presence::Missing,
            keeps_namespace: false,
            given_up: false,
            children: Presence::Missing,
            stage: Stage::Scheduling,
            restarts: 0,
            cluster_works: true,
            watch_works: true,
            operations: 0,
            open_record: false,
            stopped: false,
            was_ready: false,
        }
    }

    /// A cluster in which the empty namespace of a lab is kept for the next one.
    pub(crate) fn keeping_namespaces(keeps_namespace: bool) -> Self {
        Self { keeps_namespace, ..Self::new() }
    }

    pub(crate) fn operation(&mut self, kind: OperationKind) -> Operation {
        self.operations += 1;
        LIMITS.operation(job(self.operations), kind, self.now)
    }

    pub(crate) fn act(&mut self, act: &Act) {
        match act {
            Act::Spawn => {
                if let Ok(Admission::Begin) = admit_spawn(&self.lab, false, true) {
                    let operation = self.operation(OperationKind::Spawn);
                    (self.stopped, self.was_ready) = (false, false);
                    self.on_event(Event::SpawnAccepted(operation));
                }
            }
            Act::Stop => {
                if let Ok(Admission::Begin) = admit_stop(&self.lab) {
                    let operation = self.operation(OperationKind::Stop);
                    self.stopped = true;
                    self.on_event(Event::StopAccepted(operation));
                }
            }
            Act::Decide(allowed) if self.lab.in_flight.awaits(Request::Decide) => {
                self.lab.in_flight.answered(Request::Decide, self.now);
                let decision = if *allowed { Ok(LabTimeLimits::default()) } else { Err(failure("Denied")) };
                self.on_event(Event::Decided(decision));
            }
            Act::NeedEnvironment if self.lab.in_flight.awaits(Request::Decide) => {
                self.lab.in_flight.answered(Request::Decide, self.now);
                let needed = Event::EnvironmentNeeded(LabTimeLimits::default(), "Waiting.".to_owned());
                self.on_event(needed);
            }
            Act::NeedNamespace
                if self.lab.in_flight.awaits(Request::Decide) && self.observed().kept_for.is_some() =>
            {
                self.lab.in_flight.answered(Request::Decide, self.now);
                self.on_event(Event::NamespaceDiffers);
                self.show();
            }
            Act::FinishBind(worked) if self.lab.in_flight.awaits(Request::Bind) => {
                self.lab.in_flight.answered(Request::Bind, self.now);
                // The claim may have been made even if it was not bound.
                self.rest = Presence::Present;
                self.on_event(Event::Bound(if *worked { Ok(()) } else { Err(failure("Forbidden")) }));
                let observed = self.observed();
                self.on_event(Event::Observed(Box::new(observed)));
            }
            Act::FinishCreate(worked) if self.lab.in_flight.awaits(Request::Create) => {
                self.lab.in_flight.answered(Request::Create, self.now);
                self.rest = Presence::Present;
                if self.keeps_namespace {
                    assert!(!self.given_up, "it would be deleted");
                    self.namespace = Presence::Present;
                }
                if *worked {
                    assert!(self.pod.is_missing(), "at most one pod per lab");
                    (self.pod, self.stage, self.restarts) = (Presence::Present, Stage::Scheduling, 0);
                }
                self.on_event(Event::Created(if *worked { Ok(()) } else { Err(failure("Forbidden")) }));
                // A completed creation returns its objects, so no watch is needed to know them.
                let observed = self.observed();
                self.on_event(Event::Observed(Box::new(observed)));
            }
            Act::Note(note) => self.on_event(Event::CreationNoted(note.clone())),
            act => self.act_on_cluster(act),
        }
    }

    /// Changes the cluster, or lets time pass.
    fn act_on_cluster(&mut self, act: &Act) {
        match act {
            Act::ChainAnswer => self.answer(),
            Act::Show(stage) => {
                if self.pod == Presence::Present {
                    self.stage = *stage;
                }
                self.observe();
            }
            Act::PodGoes if self.pod == Presence::Terminating => {
                self.pod = Presence::Missing;
                self.observe();
            }
            Act::RestGoes
                if self.rest == Presence::Terminating || self.namespace == Presence::Terminating =>
            {
                if self.namespace == Presence::Terminating {
                    (self.namespace, self.given_up) = (Presence::Missing, false);
                }
                self.rest = Presence::Missing;
                self.observe();
            }
            Act::NamespaceGoes if self.namespace == Presence::Present && self.pod.is_missing() => {
                self.namespace = Presence::Terminating;
                self.observe();
            }
            Act::Evict if self.pod == Presence::Present => {
                self.pod = Presence::Missing;
                self.observe();
            }
            Act::Restart if self.pod == Presence::Present => {
                self.restarts += 1;
                self.observe();
            }
            Act::StartChild if matches!(self.lab.phase, Phase::Running(_)) => {
                self.children = Presence::Present;
                self.show();
            }
            Act::ChildrenGo if self.children == Presence::Terminating => {
                self.children = Presence::Missing;
                self.show();
            }
            Act::Wait(seconds) => {
                self.now += SignedDuration::from_secs(i64::from(*seconds));
                self.on_event(Event::Tick);
            }
            Act::BreakCluster(broken) => self.cluster_works = !broken,
            Act::BreakWatch(broken) => {
                self.watch_works = !broken;
                self.observe();
            }
            Act::Spawn
            | Act::Stop
            | Act::Note(_)
            | Act::Decide(_)
            | Act::NeedEnvironment
            | Act::NeedNamespace
            | Act::NamespaceGoes
            | Act::FinishBind(_)
            | Act::FinishCreate(_)
            | Act::PodGoes
            | Act::RestGoes
            | Act::Evict
            | Act::StartChild
            | Act::ChildrenGo
            | Act::Restart => {}
        }
    }

    /// Answers the requests to the cluster that are under way.
    fn answer(&mut self) {
        for request in self.lab.in_flight.awaited().collect::<Vec<_>>() {
            match request {
                Request::Decide
                | Request::Bind
                | Request::Create
                | Request::SaveRecord
                | Request::DeleteRecord => continue,
                Request::StopChildren
                | Request::SizePool
                | Request::DeletePod
                | Request::DeleteRest
                | Request::Read => {
                    self.lab.in_flight.answered(request, self.now);
                }
            }
            match request {
                // Labs have no workers.
                Request::SizePool => self.show(),
                // The service stops the children itself. Only their pods need the cluster.
                Request::StopChildren => {
                    self.children = self.children.min(Presence::Terminating);
                    self.show();
                }
                _ if !self.cluster_works => {
                    self.on_event(Event::RequestFailed(failure("Forbidden")));
                }
                Request::Read => {
                    let observed = self.observed();
                    self.on_event(Event::Read(Box::new(observed)));
                }
                Request::DeletePod if self.pod.is_missing() => self.show(),
                Request::DeletePod => {
                    self.pod = Presence::Terminating;
                    self.observe();
                }
                Request::DeleteRest if self.namespace == Presence::Present && !self.given_up => {
                    // The objects are deleted one by one.
                    self.rest = Presence::Missing;
                    self.show();
                }
                Request::DeleteRest if self.rest.is_missing() && self.namespace.is_missing() => self.show(),
                _ => {
                    self.rest = self.rest.min(Presence::Terminating);
                    self.namespace = self.namespace.min(Presence::Terminating);
                    self.observe();
                    self.on_event(Event::RestDeletionAccepted);
                }
            }
        }
    }

    fn observed(&self) -> Observed {
        let stage = match self.pod {
            Presence::Missing => Stage::Unknown,
            Presence::Present => self.stage,
            Presence::Terminating => Stage::Terminating,
        };
        let analysis = Analysis {
            stage,
            reason: stage.as_str().into(),
            message: format!("it is {}", stage.as_str()),
            restarts: self.restarts,
            ..Analysis::unknown()
        };
        let kept = self.namespace == Presence::Present && !self.given_up;
        let rest = if kept { self.rest } else { self.rest.max(self.namespace) };
        Observed {
            pod: self.pod,
            rest,
            kept_for: kept.then_some(KEPT_FOR),
            children: self.children,
            analysis,
            ..Observed::nothing()
        }
    }

    fn observe(&mut self) {
        if self.watch_works {
            self.show();
        }
    }

    fn show(&mut self) {
        let observed = self.observed();
        self.on_event(Event::Observed(Box::new(observed)));
    }

    /// Carries out the effects of one event, and then the plan, as the driver does.
    pub(crate) fn on_event(&mut self, event: Event) {
        let effects = self.lab.step(event, RESTARTS, self.now);
        self.carry_out(effects);
        assert!(!(self.stopped && matches!(self.lab.phase, Phase::Running(_))), "a stop must win");
        self.ask_for_next();
    }

    fn ask_for_next(&mut self) {
        let plan = plan(&self.lab, RecordState::Current, self.now);
        for request in
            plan.cancel.iter().filter(|request| !matches!(request, Request::Bind | Request::Create))
        {
            self.lab.in_flight.forget(*request);
        }
        let started: BTreeSet<Request> = plan.start.iter().copied().collect();
        assert_eq!(started.len(), plan.start.len(), "each once");
        for request in started {
            assert!(!self.lab.in_flight.awaits(request), "nothing is asked twice at a time");
            if request == Request::Create {
                assert!(self.pod.is_missing(), "at most one pod per lab");
                assert!(!self.given_up, "nothing is created in a namespace that is deleted");
            }
            if matches!(request, Request::DeletePod | Request::DeleteRest) {
                assert!(!self.lab.in_flight.creates(), "nothing is deleted while it is made");
                assert!(!matches!(self.lab.phase, Phase::Running(_)), "what runs is not deleted");
                let in_time = matches!(&self.lab.phase, Phase::Stopping(deletion) if !deletion.overdue);
                assert!(!in_time || self.children.is_missing(), "the children are deleted before the lab");
            }
            if request != Request::DeleteRecord {
                self.lab.in_flight.begin(request);
            }
        }
    }

    /// The stages in the log of the last operation, with the progress of each.
    pub(crate) fn stages(&self) -> Vec<(Stage, u8)> {
        let stage = |logged: &LoggedEntry| match &logged.entry {
            Entry::Stage(report) => Some((report.stage, report.progress)),
            _ => None,
        };
        self.log.entries().iter().filter_map(stage).collect()
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Begin(operation) => {
                    assert!(!self.open_record, "an operation begins when the one before is closed");
                    self.open_record = true;
                    self.log = ProgressLog::new(operation.job_id);
                }
                Effect::Publish(entry) => {
                    if let Entry::Complete(_) = entry {
                        let over = matches!(
                            self.lab.phase,
                            Phase::Running(_)
                                | Phase::Absent
                                | Phase::NamespaceKept(_)
                                | Phase::CleaningUp(_)
                        );
                        assert!(over, "{:?}", self.lab.phase);
                    }
                    assert!(
                        !self.log.is_finished() || matches!(entry, Entry::Error(_)),
                        "only errors may follow the end: {entry:?}"
                    );
                    self.log.append(entry, self.now);
                }
                Effect::Finish(outcome) => {
                    assert!(self.open_record, "an operation ends once");
                    self.open_record = false;
                    let last = self.stages().last().map(|(stage, _)| *stage);
                    let runs = matches!(self.lab.phase, Phase::Running(_));
                    let expected = match &outcome {
                        Outcome::Complete if runs => Stage::Running,
                        Outcome::Complete => Stage::Stopped,
                        Outcome::Failed(_) => Stage::Failed,
                        Outcome::Cancelled => Stage::Terminating,
                    };
                    assert_eq!(last, Some(expected), "the log has the last stage before the operation ends");
                    if outcome == Outcome::Complete && matches!(self.lab.phase, Phase::Running(_)) {
                        self.was_ready = true;
                        assert_eq!(
                            (self.pod, self.stage),
                            (Presence::Present, Stage::Running),
                            "ready means ready"
                        );
                    } else if outcome == Outcome::Complete {
                        assert!(self.pod.is_missing(), "stopped means that the pod is gone");
                        assert_ne!(self.rest, Presence::Present, "and that the rest is going");
                    }
                }
                Effect::Cleanup(ending) => {
                    let operation = self.operation(OperationKind::Cleanup);
                    let effects = self.lab.step(Event::CleanupBegun(operation, ending), RESTARTS, self.now);
                    self.carry_out(effects);
                }
                Effect::GiveUpNamespace => {
                    assert!(self.namespace != Presence::Missing || !self.watch_works);
                    self.given_up = true;
                }
                Effect::MarkProvisioned => assert!(matches!(self.lab.phase, Phase::Running(_))),
                Effect::Restarted(count) => assert!(count > 0),
            }
        }
    }

    /// Completes all requests under way without new ones. The watch may stay silent, so direct answers must be enough.
    pub(crate) fn run_until_idle(&mut self) {
        self.cluster_works = true;
        for _ in 0..40 {
            self.now += SignedDuration::from_secs(61);
            for act in [
                Act::FinishBind(true),
                Act::Decide(true),
                Act::FinishCreate(true),
                Act::ChainAnswer,
                Act::ChildrenGo,
                Act::PodGoes,
                Act::RestGoes,
            ] {
                self.act(&act);
            }
            if self.lab.status() == Some(LabStatus::Starting) && self.pod == Presence::Present {
                self.stage = Stage::Running;
            }
            self.observe();
            self.on_event(Event::Tick);
        }
    }
}

pub(crate) fn job(number: u128) -> JobId {
    JobId::new(uuid::Uuid::from_u128(number))
}

pub(crate) fn failure(reason: &str) -> Failure {
    Failure::cluster(reason, format!("the cluster answered {reason}"))
}

impl Simulation {
    pub(crate) fn run_a_lab(&mut self) {
        for act in [Act::Spawn, Act::Decide(true), Act::FinishCreate(true), Act::Show(Stage::Running)] {
            self.act(&act);
        }
        assert_eq!(self.lab.status(), Some(LabStatus::Running));
    }
}
