//! Properties of the lifecycle under every order of requests, answers and observations.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use wasmspawner_core::lab::JobId;
use wasmspawner_core::lifecycle::{
    Admission, Effect, Event, Failure, Lab, LabStatus, Observation, Operation, OperationKind, Outcome, Phase,
    Plan, Presence, TimeLimits, admit_spawn, admit_stop,
};
use wasmspawner_core::progress::{Entry, ProgressLog};
use wasmspawner_core::stage::{Analysis, Stage};

const LIMITS: TimeLimits =
    TimeLimits { spawn: SignedDuration::from_secs(600), delete: SignedDuration::from_secs(60) };

/// A cluster, a policy engine and a driver, as far as the state machine can tell.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact about the world")]
struct World {
    lab: Lab,
    now: Timestamp,
    log: ProgressLog,
    deciding: bool,
    applying: bool,
    pod: Presence,
    rest: Presence,
    stage: Stage,
    deletions_work: bool,
    operations: u128,
    open_record: bool,
    stopped: bool,
    inbox: VecDeque<Event>,
}

#[derive(Debug, Clone)]
enum Act {
    Spawn,
    Stop,
    Decide(bool),
    FinishApply(bool),
    Show(Stage),
    PodGoes,
    RestGoes,
    Evict,
    Wait(u16),
    BreakDeletions(bool),
    Reconcile,
}

impl World {
    fn new() -> Self {
        Self {
            lab: Lab::absent(LIMITS),
            now: Timestamp::UNIX_EPOCH,
            log: ProgressLog::new(job(0)),
            deciding: false,
            applying: false,
            pod: Presence::Missing,
            rest: Presence::Missing,
            stage: Stage::Scheduling,
            deletions_work: true,
            operations: 0,
            open_record: false,
            stopped: false,
            inbox: VecDeque::new(),
        }
    }

    fn operation(&mut self, kind: OperationKind) -> Operation {
        self.operations += 1;
        let limit = if kind == OperationKind::Spawn { LIMITS.spawn } else { LIMITS.delete };
        Operation { job_id: job(self.operations), kind, started_at: self.now, deadline: self.now + limit }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Spawn => {
                if let Ok(Admission::Begin) = admit_spawn(&self.lab, true) {
                    let operation = self.operation(OperationKind::Spawn);
                    self.stopped = false;
                    self.feed(Event::SpawnAdmitted(operation));
                }
            }
            Act::Stop => {
                if let Ok(Admission::Begin) = admit_stop(&self.lab) {
                    let operation = self.operation(OperationKind::Stop);
                    self.stopped = true;
                    self.feed(Event::StopAdmitted(operation));
                }
            }
            Act::Decide(allowed) if self.deciding => {
                self.deciding = false;
                self.feed(Event::Decided(if *allowed {
                    Ok(Plan::default())
                } else {
                    Err(failure("Denied"))
                }));
            }
            Act::FinishApply(worked) if self.applying => {
                self.applying = false;
                self.rest = Presence::Present;
                if *worked {
                    self.pod = Presence::Present;
                    self.stage = Stage::Scheduling;
                }
                self.feed(Event::Applied(if *worked { Ok(()) } else { Err(failure("Forbidden")) }));
                self.observe();
            }
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
            Act::RestGoes if self.rest == Presence::Terminating => {
                self.rest = Presence::Missing;
                self.observe();
            }
            Act::Evict if self.pod == Presence::Present => {
                self.pod = Presence::Missing;
                self.observe();
            }
            Act::Wait(seconds) => {
                self.now += SignedDuration::from_secs(i64::from(*seconds));
                self.feed(Event::Tick);
            }
            Act::BreakDeletions(broken) => self.deletions_work = !broken,
            Act::Reconcile => self.feed(Event::Reconcile),
            Act::Decide(_) | Act::FinishApply(_) | Act::PodGoes | Act::RestGoes | Act::Evict => {}
        }
    }

    fn observe(&mut self) {
        let stage = match self.pod {
            Presence::Missing => Stage::Unknown,
            Presence::Present => self.stage,
            Presence::Terminating => Stage::Terminating,
        };
        let analysis = Analysis {
            stage,
            reason: stage.as_str().into(),
            message: format!("it is {}", stage.as_str()),
            findings: Vec::new(),
            recheck_at: None,
        };
        self.feed(Event::Observed(Observation { pod: self.pod, rest: self.rest, analysis }));
    }

    /// As the driver does: every effect of one event, then the answers that came meanwhile.
    fn feed(&mut self, event: Event) {
        self.inbox.push_back(event);
        if self.inbox.len() > 1 {
            return;
        }
        while let Some(event) = self.inbox.front().cloned() {
            for effect in self.lab.step(event, self.now) {
                self.carry_out(effect);
            }
            self.inbox.pop_front();
        }
        assert!(!(self.stopped && self.lab.phase == Phase::Running), "a stop must win");
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Begin(operation) => {
                assert!(!self.open_record, "an operation begins when the one before is closed");
                self.open_record = true;
                self.log = ProgressLog::new(operation.job_id);
            }
            Effect::Publish(entry) => {
                if let Entry::Complete(_) = entry {
                    assert!(matches!(self.lab.phase, Phase::Running | Phase::Absent), "{:?}", self.lab.phase);
                }
                assert!(!self.log.is_finished(), "nothing is said after the end: {entry:?}");
                self.log.append(entry, self.now);
            }
            Effect::Finish(outcome) => {
                assert!(self.open_record, "an operation ends once");
                self.open_record = false;
                if outcome == Outcome::Complete && self.lab.phase == Phase::Running {
                    assert_eq!(
                        (self.pod, self.stage),
                        (Presence::Present, Stage::Running),
                        "ready means ready"
                    );
                }
            }
            Effect::EvaluatePolicy => self.deciding = true,
            Effect::CancelPolicy => self.deciding = false,
            Effect::Apply => {
                assert!(!self.applying, "one creation at a time");
                assert!(self.pod.is_missing(), "at most one pod a lab");
                self.applying = true;
            }
            Effect::CancelApply => assert!(self.applying, "there is something to cancel"),
            Effect::DeletePod if self.deletions_work => {
                if self.pod.is_missing() {
                    self.observe();
                } else {
                    self.pod = Presence::Terminating;
                }
            }
            Effect::DeleteRest if self.deletions_work => {
                if self.rest.is_missing() {
                    self.observe();
                } else {
                    self.rest = Presence::Terminating;
                }
            }
            Effect::DeletePod | Effect::DeleteRest => self.feed(Event::DeleteRefused(failure("Forbidden"))),
            Effect::Reap(ending) => {
                let operation = self.operation(OperationKind::Reap);
                self.feed(Event::ReapBegun(operation, ending));
            }
            Effect::MarkProvisioned => assert_eq!(self.lab.phase, Phase::Running),
        }
    }

    /// Lets everything under way end, with no new requests.
    fn settle(&mut self) {
        self.deletions_work = true;
        for _ in 0..12 {
            for act in [Act::Decide(true), Act::FinishApply(true), Act::PodGoes, Act::RestGoes] {
                self.act(&act);
            }
            if self.lab.status() == Some(LabStatus::Starting) {
                self.act(&Act::Show(Stage::Running));
            }
            self.observe();
            self.act(&Act::Reconcile);
        }
    }
}

fn job(number: u128) -> JobId {
    JobId::new(uuid::Uuid::from_u128(number))
}

fn failure(reason: &str) -> Failure {
    Failure::cluster(reason, format!("it said {reason}"))
}

fn act() -> impl Strategy<Value = Act> {
    let stage = prop::sample::select(vec![
        Stage::Scheduling,
        Stage::Pulling,
        Stage::Initializing,
        Stage::Starting,
        Stage::Running,
        Stage::Stopped,
        Stage::Failed,
        Stage::Unknown,
    ]);
    prop_oneof![
        4 => Just(Act::Spawn),
        2 => Just(Act::Stop),
        4 => prop::bool::weighted(0.8).prop_map(Act::Decide),
        4 => prop::bool::weighted(0.8).prop_map(Act::FinishApply),
        6 => stage.prop_map(Act::Show),
        3 => Just(Act::PodGoes),
        3 => Just(Act::RestGoes),
        1 => Just(Act::Evict),
        1 => (0_u16..700).prop_map(Act::Wait),
        1 => any::<bool>().prop_map(Act::BreakDeletions),
        1 => Just(Act::Reconcile),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_history_ends_in_a_legal_state_and_leaves_nothing_behind(acts in prop::collection::vec(act(), 0..60)) {
        let mut world = World::new();
        for act in &acts {
            world.act(act);
        }
        world.settle();
        match &world.lab.phase {
            Phase::Running => prop_assert_eq!(world.pod, Presence::Present),
            Phase::Absent | Phase::Failed { cleanup: None, .. } => {
                prop_assert_eq!((world.pod, world.rest), (Presence::Missing, Presence::Missing));
            }
            other => prop_assert!(false, "not settled: {:?}", other),
        }
        prop_assert!(!world.open_record, "every operation's record is closed");
        let percents: Vec<u8> = world.log.entries().iter().filter_map(|logged| match logged.entry {
            Entry::Progress(percent) => Some(percent),
            _ => None,
        }).collect();
        prop_assert!(percents.is_sorted(), "{:?}", percents);
    }
}

#[test]
fn the_usual_life() {
    let mut world = World::new();
    for act in [Act::Spawn, Act::Decide(true), Act::FinishApply(true), Act::Show(Stage::Starting)] {
        world.act(&act);
        assert_eq!(world.lab.status(), Some(LabStatus::Starting));
    }
    world.act(&Act::Show(Stage::Running));
    assert_eq!(world.lab.status(), Some(LabStatus::Running));
    world.act(&Act::Stop);
    assert_eq!(world.lab.status(), Some(LabStatus::Terminating));
    world.act(&Act::PodGoes);
    world.act(&Act::RestGoes);
    assert_eq!(world.lab.status(), None);
}

#[test]
fn a_failed_lab_keeps_its_reason_until_the_next_spawn() {
    let mut world = World::new();
    for act in [Act::Spawn, Act::Decide(true), Act::FinishApply(true), Act::Show(Stage::Failed)] {
        world.act(&act);
    }
    world.settle();
    assert_eq!(world.lab.failure().map(|failure| failure.reason.as_str()), Some("Failed"));
    world.act(&Act::Spawn);
    assert_eq!(world.lab.status(), Some(LabStatus::Starting));
}

#[test]
fn a_labs_own_time_limits_hold_for_it_and_end_with_it() {
    let mut world = World::new();
    world.act(&Act::Spawn);
    world.deciding = false;
    let plan = Plan {
        spawn_limit: Some(SignedDuration::from_secs(30)),
        delete_limit: Some(SignedDuration::from_secs(5)),
    };
    world.feed(Event::Decided(Ok(plan)));
    assert_eq!(world.lab.deadline(), Some(world.now + SignedDuration::from_secs(30)));
    world.act(&Act::FinishApply(true));
    world.act(&Act::Stop);
    assert_eq!(world.lab.deadline(), Some(world.now + SignedDuration::from_secs(5)));
    world.settle();
    world.act(&Act::Spawn);
    assert_eq!(world.lab.deadline(), Some(world.now + LIMITS.spawn));
}

#[test]
fn a_lab_that_ends_after_hours_is_gone_and_no_failure() {
    let mut world = World::new();
    for act in [Act::Spawn, Act::Decide(true), Act::FinishApply(true), Act::Show(Stage::Running)] {
        world.act(&act);
    }
    world.now += SignedDuration::from_hours(5);
    for act in [Act::Evict, Act::Wait(1), Act::RestGoes] {
        world.act(&act);
    }
    assert_eq!(world.lab.phase, Phase::Absent);
}
