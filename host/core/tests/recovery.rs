//! The state of a lab after a restart, from its record and the observed cluster.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use wasmspawner_core::config::lab::Entrance;
use wasmspawner_core::lifecycle::stage::{Analysis, Stage};
use wasmspawner_core::lifecycle::{
    Effect, Event, Failure, LabStatus, Observed, OperationKind, Phase, Presence, RestartPolicy, TimeLimits,
};
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::SpawnKind;
use wasmspawner_core::names::{NamespaceName, ObjectName, ServerName, Username};
use wasmspawner_core::record::PlaceKind;
use wasmspawner_core::record::{
    Desired, LabDescription, OperationSpec, Place, Recovered, SpawnSpec, SpawnStatus, recover,
};
use wasmspawner_core::values::digest::Digest;

const LIMITS: TimeLimits =
    TimeLimits { spawn: SignedDuration::from_secs(600), delete: SignedDuration::from_secs(60) };

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn job(number: u128) -> JobId {
    JobId::new(uuid::Uuid::from_u128(number))
}

fn spec(desired: Desired, kind: OperationKind) -> SpawnSpec {
    SpawnSpec {
        kind: SpawnKind::Lab,
        user: Username::parse("ada").unwrap(),
        name: ServerName::default(),
        server: ServerName::default(),
        parent: None,
        desired,
        epoch: 0,
        operation: OperationSpec::from_operation(&LIMITS.operation(job(1), kind, at(0)), Some("ada".into())),
        place: Place {
            namespace: NamespaceName::parse("nublado-ada").unwrap(),
            pod: ObjectName::parse("nb-ada").unwrap(),
            kind: PlaceKind::Configured,
            entrance: Entrance::Pod,
        },
        remains: Vec::new(),
        own_namespace: None,
        time_limits: LIMITS.into(),
        lab: LabDescription::default().into(),
    }
}

/// The record of a spawn whose request is in the lab's Secret, if `kept`.
fn keeping(kept: bool, spec: SpawnSpec) -> SpawnSpec {
    let request = kept.then(|| Digest::sha256(b"request"));
    SpawnSpec { operation: OperationSpec { request, ..spec.operation.clone() }, ..spec }
}

fn status(ready: bool, failed: bool) -> SpawnStatus {
    SpawnStatus {
        status: LabStatus::Starting,
        stage: Stage::Scheduling,
        reason: None,
        message: None,
        progress: 0,
        ready_at: ready.then(|| at(5)),
        finished_at: failed.then(|| at(6)),
        failure: failed.then(|| Failure::cluster("OOMKilled", "too much")),
        pod_uid: None,
        restarts: 0,
        pod_restarts: ready.then_some(1),
        conditions: Vec::new(),
    }
}

fn observed(pod: Presence, rest: Presence, stage: Stage) -> Observed {
    let stage = match pod {
        Presence::Missing => Stage::Unknown,
        Presence::Terminating => Stage::Terminating,
        Presence::Present => stage,
    };
    let analysis = Analysis { stage, reason: "Why".into(), ..Analysis::unknown() };
    Observed { pod, rest, analysis, ..Observed::nothing() }
}

fn recovered(
    spec: &SpawnSpec,
    status: &SpawnStatus,
    deleted: bool,
    observed: &Observed,
    now: i64,
) -> Recovered {
    let seen = !observed.pod.is_missing();
    recover(spec, Some(status), deleted, observed, seen, LIMITS, job(2), at(now))
}

/// The recovered lab after its first observation, which a driver makes immediately.
fn shown(mut recovered: Recovered, observed: &Observed, now: i64) -> Recovered {
    let policy = RestartPolicy::default();
    recovered.lab.step(Event::Tick, policy, at(now));
    for effect in recovered.lab.step(Event::Observed(Box::new(observed.clone())), policy, at(now)) {
        if let Effect::Cleanup(ending) = effect {
            let operation = LIMITS.operation(job(3), OperationKind::Cleanup, at(now));
            recovered.lab.step(Event::CleanupBegun(operation, ending), policy, at(now));
        }
    }
    recovered
}

/// Columns: the record; the cluster (pod, rest, stage); the status immediately after the restart.
const CASES: &str = "
a running lab                          | ready            | Present     Present     Running    | running
a running lab that is restarting       | ready            | Present     Present     Starting   | running
a spawn whose pod is pending           |                  | Present     Present     Scheduling | starting
a spawn that became ready meanwhile    |                  | Present     Present     Running    | running
a spawn without a pod                  |                  | Missing     Present     Unknown    | failed
a spawn without anything               |                  | Missing     Missing     Unknown    | failed
a spawn with its request, without pod  | kept             | Missing     Present     Unknown    | starting
a failed spawn with its request        | kept failed      | Missing     Missing     Unknown    | failed
a stop of a spawn with its request     | kept stopped     | Missing     Present     Unknown    | none
a failed lab                           | failed           | Missing     Missing     Unknown    | failed
a failed lab whose pod is left         | ready failed     | Present     Present     Running    | failed
a stop that was accepted               | stopped ready    | Present     Present     Running    | terminating
a stop whose pod is going              | stopped ready    | Terminating Present     Running    | terminating
a stop whose pod is gone               | stopped ready    | Missing     Terminating Unknown    | none
a stop of which nothing is left        | stopped ready    | Missing     Missing     Unknown    | none
a record that is being deleted         | deleted ready    | Present     Present     Running    | terminating
a spawn whose record is being deleted  | deleted          | Missing     Missing     Unknown    | none
";

#[test]
fn every_record_recovers_as_the_table_says() {
    for line in CASES.lines().filter(|line| !line.is_empty()) {
        let columns: Vec<Vec<&str>> = line.split('|').map(|text| text.split_whitespace().collect()).collect();
        let says = |word: &str| columns[1].contains(&word);
        let (desired, kind) = if says("stopped") {
            (Desired::Stopped, OperationKind::Stop)
        } else {
            (Desired::Running, OperationKind::Spawn)
        };
        let presence = |word: &str| match word {
            "Missing" => Presence::Missing,
            "Terminating" => Presence::Terminating,
            _ => Presence::Present,
        };
        let stages = [Stage::Running, Stage::Starting, Stage::Scheduling, Stage::Unknown];
        let stage = stages.into_iter().find(|stage| stage.as_str() == columns[2][2]).unwrap();
        let seen = observed(presence(columns[2][0]), presence(columns[2][1]), stage);
        let status = status(says("ready"), says("failed"));
        let recovered =
            recovered(&keeping(says("kept"), spec(desired, kind)), &status, says("deleted"), &seen, 60);
        let lab = shown(recovered, &seen, 60).lab;
        assert_eq!(lab.status().map_or("none", LabStatus::as_str), columns[3][0], "{line}");
    }
}

#[test]
fn a_pending_pod_past_its_deadline_is_never_taken_for_running() {
    let seen = observed(Presence::Present, Presence::Present, Stage::Scheduling);
    let spec = spec(Desired::Running, OperationKind::Spawn);
    let mut lab = shown(recovered(&spec, &status(false, false), false, &seen, 7200), &seen, 7200).lab;
    assert_eq!(lab.status(), Some(LabStatus::Starting), "until the cluster was read");
    lab.step(Event::Read(Box::new(seen)), RestartPolicy::default(), at(7200));
    assert_eq!(lab.failure().map(|failure| failure.reason.as_str()), Some("SpawnTimeout"));
}

#[test]
fn a_spawn_without_a_pod_is_recovered_as_interrupted() {
    let seen = observed(Presence::Missing, Presence::Present, Stage::Unknown);
    let spec = spec(Desired::Running, OperationKind::Spawn);
    let lab = recovered(&spec, &status(false, false), false, &seen, 60);
    assert_eq!(lab.interrupted.map(|failure| failure.reason).as_deref(), Some("Interrupted"));
    assert_eq!(lab.lab.failure().map(|failure| failure.reason.as_str()), Some("Interrupted"));
}

/// The kernels of a Jupyter server do not outlive it, even if the service was away when it was restarted.
#[test]
fn a_restart_while_the_service_was_away_is_noticed_once() {
    let mut seen = observed(Presence::Present, Presence::Present, Stage::Running);
    seen.analysis.restarts = 3;
    let mut lab =
        recovered(&spec(Desired::Running, OperationKind::Spawn), &status(true, false), false, &seen, 60).lab;
    let mut observe = || lab.step(Event::Observed(Box::new(seen.clone())), RestartPolicy::default(), at(60));
    let restarts = |effects: Vec<Effect>| {
        let count = |effect| if let Effect::Restarted(count) = effect { Some(count) } else { None };
        effects.into_iter().filter_map(count).collect::<Vec<_>>()
    };
    assert_eq!(restarts(observe()), [2]);
    assert!(restarts(observe()).is_empty());
}

fn presence() -> impl Strategy<Value = Presence> {
    prop::sample::select(vec![Presence::Missing, Presence::Terminating, Presence::Present])
}

proptest! {
    #[test]
    fn recovery_never_restarts_a_stopped_lab_or_loses_a_ready_one(
        kept in any::<bool>(), stopped in any::<bool>(), ready in any::<bool>(), failed in any::<bool>(), deleted in any::<bool>(),
        cleanup in any::<bool>(), pod in presence(), rest in presence(), now in 0_i64..100_000,
        stage in prop::sample::select(vec![Stage::Scheduling, Stage::Starting, Stage::Running, Stage::Failed, Stage::Stopped, Stage::Unknown]),
    ) {
        let desired = if stopped { Desired::Stopped } else { Desired::Running };
        let kind = match (stopped, cleanup) {
            (false, _) => OperationKind::Spawn,
            (true, false) => OperationKind::Stop,
            (true, true) => OperationKind::Cleanup,
        };
        let seen = observed(pod, rest, stage);
        let record = keeping(kept, spec(desired, kind));
        let before = recovered(&record, &status(ready, failed), deleted, &seen, now);
        if ready && !failed && !stopped && !deleted {
            prop_assert!(matches!(before.lab.phase, Phase::Running(_)), "it was ready: {:?}", before.lab.phase);
        }
        let after = shown(before, &seen, now).lab;
        match &after.phase {
            Phase::Running(_) => prop_assert!(!stopped && !deleted && !failed && pod == Presence::Present),
            Phase::Starting(_) => {
                prop_assert!(!stopped && !deleted && !failed && !ready && (kept || !pod.is_missing()));
            }
            // A lab that was ready and whose pod no longer exists has ended on its own.
            Phase::Absent => prop_assert!((stopped || deleted || ready) && pod.is_missing() && rest.is_missing()),
            Phase::CleaningUp(_) => prop_assert!((stopped || deleted || ready) && pod.is_missing()),
            Phase::NamespaceKept(_) => prop_assert!(false, "there is none"),
            Phase::Stopping(_) | Phase::Failed(_) => {}
        }
    }
}
