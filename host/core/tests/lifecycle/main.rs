//! Properties of the lifecycle under all orders of requests, answers and observations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod act;
mod simulation;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use wasmspawner_core::lifecycle::progress::Entry;
use wasmspawner_core::lifecycle::stage::Stage;
use wasmspawner_core::lifecycle::{
    CreationNote, Event, KeptNamespace, LabStatus, LabTimeLimits, OperationKind, Phase, Presence,
    RecordState, Request, plan,
};

use act::{Act, act};
use simulation::{KEPT_FOR, LIMITS, RESTARTS, Simulation};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_sequence_of_events_ends_in_a_legal_state_without_leftovers(
        acts in prop::collection::vec(act(), 0..60), keeps in any::<bool>(),
    ) {
        let mut simulation = Simulation::keeping_namespaces(keeps);
        for act in &acts {
            simulation.act(act);
        }
        simulation.run_until_idle();
        match &simulation.lab.phase {
            Phase::Running(_) => prop_assert!(simulation.pod == Presence::Present || !simulation.watch_works),
            phase @ (Phase::Absent | Phase::Failed(_)) => {
                let left = [simulation.children, simulation.pod, simulation.rest];
                prop_assert_eq!(left, [Presence::Missing; 3]);
                prop_assert!(simulation.namespace.is_missing() || matches!(phase, Phase::Failed(_)));
            }
            other => prop_assert!(false, "not settled: {:?}", other),
        }
        prop_assert!(!simulation.open_record, "every operation's record is closed");
        let percents: Vec<u8> = simulation.log.entries().iter().filter_map(|logged| match logged.entry {
            Entry::Progress(percent) => Some(percent),
            _ => None,
        }).collect();
        prop_assert!(percents.is_sorted(), "{:?}", percents);
    }
}

#[test]
fn a_task_that_fails_without_an_answer_fails_the_spawn() {
    for (acts, request) in [
        (vec![Act::Spawn], Request::Decide),
        (vec![Act::Spawn, Act::NeedEnvironment], Request::Bind),
        (vec![Act::Spawn, Act::NeedEnvironment, Act::FinishBind(true)], Request::Decide),
        (vec![Act::Spawn, Act::Decide(true)], Request::Create),
    ] {
        let mut simulation = Simulation::new();
        for act in &acts {
            simulation.act(act);
        }
        assert!(simulation.lab.in_flight.awaits(request), "{request:?}");
        let effects = simulation.lab.lost(request, RESTARTS, simulation.now);
        assert!(!effects.is_empty(), "{request:?}");
        assert_ne!(simulation.lab.status(), Some(LabStatus::Starting), "{request:?}");
    }
}

#[test]
fn a_lab_starts_runs_and_stops() {
    let mut simulation = Simulation::new();
    for act in [Act::Spawn, Act::Decide(true), Act::FinishCreate(true), Act::Show(Stage::Starting)] {
        simulation.act(&act);
        assert_eq!(simulation.lab.status(), Some(LabStatus::Starting));
    }
    simulation.act(&Act::Show(Stage::Running));
    assert_eq!(simulation.lab.status(), Some(LabStatus::Running));
    simulation.act(&Act::Stop);
    assert_eq!(simulation.lab.status(), Some(LabStatus::Terminating));
    for act in [Act::ChainAnswer, Act::PodGoes, Act::ChainAnswer] {
        simulation.act(&act);
    }
    assert_eq!(simulation.lab.status(), None, "gone for its user once the rest was asked to go");
    assert!(matches!(simulation.lab.phase, Phase::CleaningUp(_)));
    simulation.act(&Act::RestGoes);
    assert_eq!(simulation.lab.phase, Phase::Absent);
    assert_eq!(simulation.stages(), [(Stage::Terminating, 10), (Stage::Stopped, 50)]);
}

#[test]
fn a_lab_that_starts_again_soon_gets_the_namespace_that_was_kept() {
    let mut simulation = Simulation::keeping_namespaces(true);
    simulation.run_a_lab();
    for act in [Act::Stop, Act::ChainAnswer, Act::PodGoes, Act::ChainAnswer] {
        simulation.act(&act);
    }
    let until = simulation.now + KEPT_FOR;
    assert_eq!(simulation.lab.phase, Phase::NamespaceKept(KeptNamespace { until }));
    assert_eq!((simulation.lab.status(), simulation.namespace), (None, Presence::Present));
    simulation.act(&Act::Spawn);
    assert!(simulation.lab.in_flight.awaits(Request::Decide), "it waits for nothing");
    for act in [Act::Decide(true), Act::FinishCreate(true), Act::Show(Stage::Running)] {
        simulation.act(&act);
    }
    for act in [Act::Stop, Act::ChainAnswer, Act::PodGoes, Act::ChainAnswer] {
        simulation.act(&act);
    }
    simulation.act(&Act::Wait(599));
    assert!(matches!(simulation.lab.phase, Phase::NamespaceKept(_)));
    simulation.act(&Act::Wait(1));
    assert!(matches!(simulation.lab.phase, Phase::CleaningUp(_)));
    let waits = plan(&simulation.lab, RecordState::KeepsNamespace, simulation.now);
    assert_eq!(waits.start, [Request::SaveRecord], "nobody may start a lab there when it is deleted");
    simulation.act(&Act::ChainAnswer);
    assert_eq!(simulation.namespace, Presence::Terminating);
    simulation.act(&Act::RestGoes);
    assert_eq!(simulation.lab.phase, Phase::Absent);
}

#[test]
fn a_lab_that_needs_another_namespace_waits_until_the_kept_one_is_gone() {
    let mut simulation = Simulation::keeping_namespaces(true);
    simulation.run_a_lab();
    for act in [Act::Stop, Act::ChainAnswer, Act::PodGoes, Act::ChainAnswer, Act::Spawn, Act::NeedNamespace] {
        simulation.act(&act);
    }
    simulation.act(&Act::ChainAnswer);
    assert_eq!(simulation.namespace, Presence::Terminating);
    assert!(!simulation.lab.in_flight.awaits(Request::Decide));
    simulation.act(&Act::RestGoes);
    for act in [Act::Decide(true), Act::FinishCreate(true), Act::Show(Stage::Running)] {
        simulation.act(&act);
    }
    assert_eq!(simulation.lab.status(), Some(LabStatus::Running));
}

#[test]
fn a_spawn_that_waits_for_an_old_claim_in_vain_names_it() {
    let name = || "claim-ada".to_owned();
    let waits = || Act::Note(CreationNote::WaitsForClaim { name: name(), kept_by: Some("a reason".into()) });
    let failure = |acts: Vec<Act>| {
        let mut simulation = Simulation::new();
        for act in [vec![Act::Spawn, Act::Decide(true)], acts].concat() {
            simulation.act(&act);
        }
        let failure = simulation.lab.failure().cloned().unwrap();
        (failure.reason, failure.message)
    };
    let time_passes = [Act::Wait(3600), Act::ChainAnswer];
    let (reason, message) =
        failure([vec![waits(), Act::Show(Stage::Unknown)], time_passes.to_vec()].concat());
    assert_eq!(reason, "StillBeingDeleted");
    let expected =
        "The lab was not ready in time: the old volume claim-ada is still being deleted (a reason)";
    assert_eq!(message, expected);
    let gone = Act::Note(CreationNote::ClaimGone(name()));
    let (reason, _) = failure([vec![waits(), gone], time_passes.to_vec()].concat());
    assert_eq!(reason, "SpawnTimeout", "it does not wait for the claim any more");
}

#[test]
fn the_stages_of_an_end_are_in_the_log_once() {
    let mut simulation = Simulation::new();
    simulation.run_a_lab();
    simulation.act(&Act::Show(Stage::Stopped));
    simulation.run_until_idle();
    assert_eq!(simulation.stages(), [(Stage::Stopped, 0)], "it has shut down by itself");
    for act in [Act::Spawn, Act::Decide(false)] {
        simulation.act(&act);
    }
    assert_eq!(simulation.stages(), [(Stage::Failed, 100)], "a policy has refused it");
}

#[test]
fn the_children_of_a_lab_are_deleted_before_it() {
    let mut simulation = Simulation::new();
    simulation.run_a_lab();
    for act in [Act::StartChild, Act::Stop, Act::ChainAnswer] {
        simulation.act(&act);
    }
    assert_eq!((simulation.children, simulation.pod), (Presence::Terminating, Presence::Present));
    simulation.act(&Act::ChildrenGo);
    simulation.act(&Act::ChainAnswer);
    assert_eq!(simulation.pod, Presence::Terminating);
    simulation.run_until_idle();
    assert_eq!(simulation.lab.phase, Phase::Absent);
}

#[test]
fn a_child_that_does_not_end_delays_the_lab_only_until_its_time_limit() {
    let mut simulation = Simulation::new();
    simulation.run_a_lab();
    let late = u16::try_from(LIMITS.delete.as_secs()).unwrap() + 1;
    for act in [Act::StartChild, Act::Stop, Act::ChainAnswer, Act::Wait(late), Act::ChainAnswer] {
        simulation.act(&act);
    }
    assert_eq!((simulation.children, simulation.pod), (Presence::Terminating, Presence::Terminating));
    assert_eq!(simulation.lab.status(), Some(LabStatus::Terminating));
}

#[test]
fn a_spawn_waits_until_the_previous_lab_is_deleted() {
    let mut simulation = Simulation::new();
    simulation.run_a_lab();
    for act in [Act::Stop, Act::ChainAnswer, Act::PodGoes, Act::ChainAnswer, Act::Spawn, Act::ChainAnswer] {
        simulation.act(&act);
    }
    assert_eq!(simulation.lab.status(), Some(LabStatus::Starting));
    assert!(!simulation.lab.in_flight.awaits(Request::Decide), "the namespace is still going");
    let waits_for_previous_lab = |simulation: &Simulation| {
        simulation
            .log
            .entries()
            .iter()
            .any(|logged| logged.entry == Entry::Info("Waiting until the previous lab is gone".into()))
    };
    assert!(waits_for_previous_lab(&simulation));
    simulation.act(&Act::RestGoes);
    assert!(simulation.lab.in_flight.awaits(Request::Decide));
}

#[test]
fn a_stop_succeeds_although_the_watch_is_broken() {
    let mut simulation = Simulation::new();
    simulation.run_a_lab();
    for act in
        [Act::BreakWatch(true), Act::Stop, Act::ChainAnswer, Act::PodGoes, Act::Wait(3), Act::ChainAnswer]
    {
        simulation.act(&act);
    }
    simulation.run_until_idle();
    assert_eq!(simulation.lab.phase, Phase::Absent);
    assert!(matches!(simulation.log.entries().last().map(|last| &last.entry), Some(Entry::Complete(_))));
}

#[test]
fn a_failed_lab_keeps_its_reason_until_the_next_spawn_or_a_stop() {
    let mut simulation = Simulation::new();
    for act in [Act::Spawn, Act::Decide(true), Act::FinishCreate(true), Act::Show(Stage::Failed)] {
        simulation.act(&act);
    }
    simulation.run_until_idle();
    assert_eq!(simulation.lab.failure().map(|failure| failure.reason.as_str()), Some("Failed"));
    let mut dismissed = simulation.lab.clone();
    let operation = simulation.operation(OperationKind::Stop);
    dismissed.step(Event::StopAccepted(operation), RESTARTS, simulation.now);
    assert_eq!(dismissed.phase, Phase::Absent);
    simulation.act(&Act::Spawn);
    assert_eq!(simulation.lab.status(), Some(LabStatus::Starting));
}

#[test]
fn a_failure_is_forgotten_in_time_but_only_after_its_objects_are_deleted() {
    let mut simulation = Simulation::new();
    for act in [Act::Spawn, Act::Decide(true), Act::FinishCreate(true), Act::Show(Stage::Failed)] {
        simulation.act(&act);
    }
    let later = simulation.now + SignedDuration::from_hours(24);
    assert!(!simulation.lab.forget_failure(later, simulation.now), "its pod is still there");
    simulation.run_until_idle();
    assert!(!simulation.lab.forget_failure(Timestamp::UNIX_EPOCH, simulation.now));
    assert!(simulation.lab.forget_failure(later, simulation.now));
    assert_eq!(simulation.lab.phase, Phase::Absent);
}

#[test]
fn the_cluster_is_read_before_a_spawn_times_out() {
    let mut simulation = Simulation::new();
    for act in [
        Act::Spawn,
        Act::Decide(true),
        Act::FinishCreate(true),
        Act::BreakWatch(true),
        Act::Show(Stage::Running),
    ] {
        simulation.act(&act);
    }
    simulation.act(&Act::Wait(601));
    assert_eq!(simulation.lab.status(), Some(LabStatus::Starting), "not before the cluster was read");
    assert!(simulation.lab.in_flight.awaits(Request::Read));
    simulation.act(&Act::ChainAnswer);
    assert_eq!(
        simulation.lab.status(),
        Some(LabStatus::Running),
        "it was ready, and the record did not say so"
    );

    let mut simulation = Simulation::new();
    for act in [
        Act::Spawn,
        Act::Decide(true),
        Act::FinishCreate(true),
        Act::BreakCluster(true),
        Act::Wait(601),
        Act::ChainAnswer,
    ] {
        simulation.act(&act);
    }
    assert_eq!(simulation.lab.status(), Some(LabStatus::Starting), "a look that failed is no look");
    for act in [Act::BreakCluster(false), Act::Wait(3), Act::ChainAnswer] {
        simulation.act(&act);
    }
    assert_eq!(simulation.lab.failure().map(|failure| failure.reason.as_str()), Some("SpawnTimeout"));
}

#[test]
fn a_running_lab_survives_restarts_until_they_are_too_many() {
    let mut simulation = Simulation::new();
    simulation.run_a_lab();
    for _ in 0..RESTARTS.allowed {
        for act in [Act::Restart, Act::Show(Stage::Starting), Act::Show(Stage::Running)] {
            simulation.act(&act);
        }
        assert_eq!(simulation.lab.status(), Some(LabStatus::Running));
    }
    let errors =
        simulation.log.entries().iter().filter(|logged| matches!(logged.entry, Entry::Error(_))).count();
    assert!(errors >= 1, "{:?}", simulation.log.entries());
    simulation.now += SignedDuration::from_hours(1);
    simulation.act(&Act::Restart);
    assert_eq!(simulation.lab.status(), Some(LabStatus::Running), "those of an hour ago do not count");
    for _ in 0..RESTARTS.allowed {
        simulation.act(&Act::Restart);
    }
    assert_eq!(simulation.lab.failure().map(|failure| failure.reason.as_str()), Some("CrashLoopBackOff"));
}

#[test]
fn time_limits_of_a_policy_hold_for_their_lab_only() {
    let mut simulation = Simulation::new();
    simulation.act(&Act::Spawn);
    simulation.lab.in_flight.answered(Request::Decide, simulation.now);
    let terms = LabTimeLimits {
        spawn_limit: Some(SignedDuration::from_secs(30)),
        delete_limit: Some(SignedDuration::from_secs(5)),
    };
    simulation.on_event(Event::Decided(Ok(terms)));
    assert_eq!(simulation.lab.deadline(), Some(simulation.now + SignedDuration::from_secs(30)));
    simulation.act(&Act::FinishCreate(true));
    simulation.act(&Act::Stop);
    assert_eq!(simulation.lab.deadline(), Some(simulation.now + SignedDuration::from_secs(5)));
    simulation.run_until_idle();
    simulation.act(&Act::Spawn);
    assert_eq!(simulation.lab.deadline(), Some(simulation.now + LIMITS.spawn));
}

#[test]
fn the_time_limit_of_a_deletion_counts_from_its_last_progress() {
    let mut simulation = Simulation::new();
    simulation.run_a_lab();
    simulation.act(&Act::Stop);
    simulation.act(&Act::Wait(50));
    simulation.act(&Act::ChainAnswer);
    assert_eq!(simulation.lab.deadline(), Some(simulation.now + LIMITS.delete), "the pod is going now");
    simulation.act(&Act::Wait(61));
    simulation.act(&Act::ChainAnswer);
    assert_eq!(simulation.lab.failure().map(|failure| failure.reason.as_str()), Some("DeleteTimeout"));
    simulation.run_until_idle();
    assert_eq!(simulation.lab.phase, Phase::Absent, "and goes on, until nothing is left");
}

#[test]
fn a_lab_that_ends_after_hours_is_removed_without_a_failure() {
    let mut simulation = Simulation::new();
    simulation.run_a_lab();
    simulation.now += SignedDuration::from_hours(5);
    for act in [Act::Evict, Act::ChainAnswer, Act::Wait(1), Act::RestGoes] {
        simulation.act(&act);
    }
    assert_eq!(simulation.lab.phase, Phase::Absent);
}
