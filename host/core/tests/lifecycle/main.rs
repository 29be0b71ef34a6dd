//! Properties of the lifecycle under every order of requests, answers and observations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use wasmspawner_core::lifecycle::{Event, LabStatus, LabTerms, OperationKind, Phase, Presence, Request};
use wasmspawner_core::progress::Entry;
use wasmspawner_core::stage::Stage;

use world::{Act, LIMITS, RESTARTS, World, act};

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
            Phase::Running(_) => prop_assert!(world.pod == Presence::Present || !world.watch_works),
            Phase::Absent | Phase::Failed(_) => {
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
    for act in [Act::Spawn, Act::Decide(true), Act::FinishCreate(true), Act::Show(Stage::Starting)] {
        world.act(&act);
        assert_eq!(world.lab.status(), Some(LabStatus::Starting));
    }
    world.act(&Act::Show(Stage::Running));
    assert_eq!(world.lab.status(), Some(LabStatus::Running));
    world.act(&Act::Stop);
    assert_eq!(world.lab.status(), Some(LabStatus::Terminating));
    for act in [Act::Answer, Act::PodGoes, Act::Answer] {
        world.act(&act);
    }
    assert_eq!(world.lab.status(), None, "gone for its user once the rest was asked to go");
    assert!(matches!(world.lab.phase, Phase::Leaving(_)));
    world.act(&Act::RestGoes);
    assert_eq!(world.lab.phase, Phase::Absent);
}

#[test]
fn a_spawn_waits_until_the_lab_before_is_gone() {
    let mut world = World::new();
    world.run_a_lab();
    for act in [Act::Stop, Act::Answer, Act::PodGoes, Act::Answer, Act::Spawn, Act::Answer] {
        world.act(&act);
    }
    assert_eq!(world.lab.status(), Some(LabStatus::Starting));
    assert!(!world.lab.in_flight.awaits(Request::Decide), "the namespace is still going");
    let said = |world: &World| {
        world
            .log
            .entries()
            .iter()
            .any(|logged| logged.entry == Entry::Info("Waiting until the previous lab is gone".into()))
    };
    assert!(said(&world));
    world.act(&Act::RestGoes);
    assert!(world.lab.in_flight.awaits(Request::Decide));
}

#[test]
fn a_stop_succeeds_although_the_watch_is_dead() {
    let mut world = World::new();
    world.run_a_lab();
    for act in [Act::BreakWatch(true), Act::Stop, Act::Answer, Act::PodGoes, Act::Wait(3), Act::Answer] {
        world.act(&act);
    }
    world.settle();
    assert_eq!(world.lab.phase, Phase::Absent);
    assert!(matches!(world.log.entries().last().map(|last| &last.entry), Some(Entry::Complete(_))));
}

#[test]
fn a_failed_lab_keeps_its_reason_until_the_next_spawn_or_a_stop() {
    let mut world = World::new();
    for act in [Act::Spawn, Act::Decide(true), Act::FinishCreate(true), Act::Show(Stage::Failed)] {
        world.act(&act);
    }
    world.settle();
    assert_eq!(world.lab.failure().map(|failure| failure.reason.as_str()), Some("Failed"));
    let mut dismissed = world.lab.clone();
    let operation = world.operation(OperationKind::Stop);
    dismissed.step(Event::StopAccepted(operation), RESTARTS, world.now);
    assert_eq!(dismissed.phase, Phase::Absent);
    world.act(&Act::Spawn);
    assert_eq!(world.lab.status(), Some(LabStatus::Starting));
}

#[test]
fn a_failure_is_forgotten_after_a_while_and_only_when_nothing_is_left() {
    let mut world = World::new();
    for act in [Act::Spawn, Act::Decide(true), Act::FinishCreate(true), Act::Show(Stage::Failed)] {
        world.act(&act);
    }
    let later = world.now + SignedDuration::from_hours(24);
    assert!(!world.lab.forget_failure(later), "its pod is still there");
    world.settle();
    assert!(!world.lab.forget_failure(Timestamp::UNIX_EPOCH));
    assert!(world.lab.forget_failure(later));
    assert_eq!(world.lab.phase, Phase::Absent);
}

#[test]
fn no_time_limit_is_believed_without_a_look() {
    let mut world = World::new();
    for act in [
        Act::Spawn,
        Act::Decide(true),
        Act::FinishCreate(true),
        Act::BreakWatch(true),
        Act::Show(Stage::Running),
    ] {
        world.act(&act);
    }
    world.act(&Act::Wait(601));
    assert_eq!(world.lab.status(), Some(LabStatus::Starting), "not before the cluster was read");
    assert!(world.lab.in_flight.awaits(Request::Read));
    world.act(&Act::Answer);
    assert_eq!(world.lab.status(), Some(LabStatus::Running), "it was ready, and nobody had said so");

    let mut world = World::new();
    for act in [
        Act::Spawn,
        Act::Decide(true),
        Act::FinishCreate(true),
        Act::BreakCluster(true),
        Act::Wait(601),
        Act::Answer,
    ] {
        world.act(&act);
    }
    assert_eq!(world.lab.status(), Some(LabStatus::Starting), "a look that failed is no look");
    for act in [Act::BreakCluster(false), Act::Wait(3), Act::Answer] {
        world.act(&act);
    }
    assert_eq!(world.lab.failure().map(|failure| failure.reason.as_str()), Some("SpawnTimeout"));
}

#[test]
fn a_running_lab_survives_restarts_until_they_are_too_many() {
    let mut world = World::new();
    world.run_a_lab();
    for _ in 0..RESTARTS.allowed {
        for act in [Act::Restart, Act::Show(Stage::Starting), Act::Show(Stage::Running)] {
            world.act(&act);
        }
        assert_eq!(world.lab.status(), Some(LabStatus::Running));
    }
    let told = world.log.entries().iter().filter(|logged| matches!(logged.entry, Entry::Error(_))).count();
    assert!(told >= 1, "{:?}", world.log.entries());
    world.now += SignedDuration::from_hours(1);
    world.act(&Act::Restart);
    assert_eq!(world.lab.status(), Some(LabStatus::Running), "those of an hour ago do not count");
    for _ in 0..RESTARTS.allowed {
        world.act(&Act::Restart);
    }
    assert_eq!(world.lab.failure().map(|failure| failure.reason.as_str()), Some("CrashLoopBackOff"));
}

#[test]
fn a_labs_own_time_limits_hold_for_it_and_end_with_it() {
    let mut world = World::new();
    world.act(&Act::Spawn);
    world.lab.in_flight.answered(Request::Decide, world.now);
    let terms = LabTerms {
        spawn_limit: Some(SignedDuration::from_secs(30)),
        delete_limit: Some(SignedDuration::from_secs(5)),
    };
    world.feed(Event::Decided(Ok(terms)));
    assert_eq!(world.lab.deadline(), Some(world.now + SignedDuration::from_secs(30)));
    world.act(&Act::FinishCreate(true));
    world.act(&Act::Stop);
    assert_eq!(world.lab.deadline(), Some(world.now + SignedDuration::from_secs(5)));
    world.settle();
    world.act(&Act::Spawn);
    assert_eq!(world.lab.deadline(), Some(world.now + LIMITS.spawn));
}

#[test]
fn the_time_limit_of_a_deletion_counts_from_its_last_progress() {
    let mut world = World::new();
    world.run_a_lab();
    world.act(&Act::Stop);
    world.act(&Act::Wait(50));
    world.act(&Act::Answer);
    assert_eq!(world.lab.deadline(), Some(world.now + LIMITS.delete), "the pod is going now");
    world.act(&Act::Wait(61));
    world.act(&Act::Answer);
    assert_eq!(world.lab.failure().map(|failure| failure.reason.as_str()), Some("DeleteTimeout"));
    world.settle();
    assert_eq!(world.lab.phase, Phase::Absent, "and goes on, until nothing is left");
}

#[test]
fn a_lab_that_ends_after_hours_is_gone_and_no_failure() {
    let mut world = World::new();
    world.run_a_lab();
    world.now += SignedDuration::from_hours(5);
    for act in [Act::Evict, Act::Answer, Act::Wait(1), Act::RestGoes] {
        world.act(&act);
    }
    assert_eq!(world.lab.phase, Phase::Absent);
}
