//! Properties of the lifecycle under all orders of requests, answers and observations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod simulation;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use wasmspawner_core::lifecycle::{Event, LabStatus, LabTimeLimits, OperationKind, Phase, Presence, Request};
use wasmspawner_core::progress::Entry;
use wasmspawner_core::stage::Stage;

use simulation::{Act, LIMITS, RESTARTS, Simulation, act};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_history_ends_in_a_legal_state_and_leaves_nothing_behind(acts in prop::collection::vec(act(), 0..60)) {
        let mut simulation = Simulation::new();
        for act in &acts {
            simulation.act(act);
        }
        simulation.run_until_idle();
        match &simulation.lab.phase {
            Phase::Running(_) => prop_assert!(simulation.pod == Presence::Present || !simulation.watch_works),
            Phase::Absent | Phase::Failed(_) => {
                prop_assert_eq!((simulation.pod, simulation.rest), (Presence::Missing, Presence::Missing));
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
fn the_usual_life() {
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
}

#[test]
fn a_spawn_waits_until_the_lab_before_is_gone() {
    let mut simulation = Simulation::new();
    simulation.run_a_lab();
    for act in [Act::Stop, Act::ChainAnswer, Act::PodGoes, Act::ChainAnswer, Act::Spawn, Act::ChainAnswer] {
        simulation.act(&act);
    }
    assert_eq!(simulation.lab.status(), Some(LabStatus::Starting));
    assert!(!simulation.lab.in_flight.awaits(Request::Decide), "the namespace is still going");
    let said = |simulation: &Simulation| {
        simulation
            .log
            .entries()
            .iter()
            .any(|logged| logged.entry == Entry::Info("Waiting until the previous lab is gone".into()))
    };
    assert!(said(&simulation));
    simulation.act(&Act::RestGoes);
    assert!(simulation.lab.in_flight.awaits(Request::Decide));
}

#[test]
fn a_stop_succeeds_although_the_watch_is_dead() {
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
fn a_failure_is_forgotten_after_a_while_and_only_when_nothing_is_left() {
    let mut simulation = Simulation::new();
    for act in [Act::Spawn, Act::Decide(true), Act::FinishCreate(true), Act::Show(Stage::Failed)] {
        simulation.act(&act);
    }
    let later = simulation.now + SignedDuration::from_hours(24);
    assert!(!simulation.lab.forget_failure(later), "its pod is still there");
    simulation.run_until_idle();
    assert!(!simulation.lab.forget_failure(Timestamp::UNIX_EPOCH));
    assert!(simulation.lab.forget_failure(later));
    assert_eq!(simulation.lab.phase, Phase::Absent);
}

#[test]
fn no_time_limit_is_believed_without_a_look() {
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
    assert_eq!(simulation.lab.status(), Some(LabStatus::Running), "it was ready, and nobody had said so");

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
    let told =
        simulation.log.entries().iter().filter(|logged| matches!(logged.entry, Entry::Error(_))).count();
    assert!(told >= 1, "{:?}", simulation.log.entries());
    simulation.now += SignedDuration::from_hours(1);
    simulation.act(&Act::Restart);
    assert_eq!(simulation.lab.status(), Some(LabStatus::Running), "those of an hour ago do not count");
    for _ in 0..RESTARTS.allowed {
        simulation.act(&Act::Restart);
    }
    assert_eq!(simulation.lab.failure().map(|failure| failure.reason.as_str()), Some("CrashLoopBackOff"));
}

#[test]
fn a_labs_own_time_limits_hold_for_it_and_end_with_it() {
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
fn a_lab_that_ends_after_hours_is_gone_and_no_failure() {
    let mut simulation = Simulation::new();
    simulation.run_a_lab();
    simulation.now += SignedDuration::from_hours(5);
    for act in [Act::Evict, Act::ChainAnswer, Act::Wait(1), Act::RestGoes] {
        simulation.act(&act);
    }
    assert_eq!(simulation.lab.phase, Phase::Absent);
}
