//! Random schedules: users, administrators and restarts in any order. The service sees everything late, carries out
//! only some of its actions, and is refused when it is too late.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wasmspawner_core::custom_resource::environment::{
    Claim, ClaimPhase, ClaimRef, FINALIZER, OWNER, RELEASED, ReclaimPolicy, TargetDefect, TargetPhase,
};

use crate::cluster::{Cluster, claim, class, object_name, target};

#[derive(Debug, Clone)]
enum Event {
    Class { name: u8, retain: bool, pool: u32, foreign: bool },
    ClassGone(u8),
    Claim { name: u8, class: Option<u8>, target: Option<u8>, owner: Option<u8> },
    ClaimDeleted(u8),
    ClaimForced(u8),
    Target { name: u8, class: Option<u8>, claim: Option<u8> },
    TargetDeleted(usize),
    TargetFreed(usize),
    NamespaceDeleted { which: usize, stuck: bool },
    NamespacesFreed,
    TargetBroken { name: u8, is_final: bool },
    TargetMended(u8),
    Later(i64),
    Restart,
    See(u8),
    Work { some: u32 },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let few = 0_u8..3;
    let maybe = || proptest::option::of(0_u8..3);
    let event = prop_oneof![
        2 => (few.clone(), any::<bool>(), 0_u32..3, proptest::bool::weighted(0.1))
            .prop_map(|(name, retain, pool, foreign)| Event::Class { name, retain, pool, foreign }),
        1 => few.clone().prop_map(Event::ClassGone),
        6 => (few.clone(), maybe(), proptest::option::weighted(0.2, 0_u8..3), maybe())
            .prop_map(|(name, class, target, owner)| Event::Claim { name, class, target, owner }),
        4 => few.clone().prop_map(Event::ClaimDeleted),
        1 => few.clone().prop_map(Event::ClaimForced),
        2 => (few.clone(), maybe(), maybe()).prop_map(|(name, class, claim)| Event::Target { name, class, claim }),
        2 => (0_usize..6).prop_map(Event::TargetDeleted),
        1 => (0_usize..6).prop_map(Event::TargetFreed),
        1 => (0_usize..4, any::<bool>()).prop_map(|(which, stuck)| Event::NamespaceDeleted { which, stuck }),
        1 => Just(Event::NamespacesFreed),
        1 => (few.clone(), any::<bool>()).prop_map(|(name, is_final)| Event::TargetBroken { name, is_final }),
        1 => few.clone().prop_map(Event::TargetMended),
        1 => (1_i64..200).prop_map(Event::Later),
        1 => Just(Event::Restart),
        8 => (0_u8..5).prop_map(Event::See),
        12 => any::<u32>().prop_map(|some| Event::Work { some }),
    ];
    proptest::collection::vec(event, 1..60)
}

fn happen(cluster: &mut Cluster, event: &Event) {
    let class_name = |class: &Option<u8>| class.map(|number| format!("class-{number}"));
    match event {
        Event::Class { name, retain, pool, foreign } => {
            let policy = if *retain { ReclaimPolicy::Retain } else { ReclaimPolicy::Delete };
            let mut class = class(&format!("class-{name}"), policy, *pool);
            if *foreign {
                "example.org/other".clone_into(&mut class.spec.provisioner);
            }
            cluster.add_class(class);
        }
        Event::ClassGone(name) => drop(cluster.has.classes.remove(&format!("class-{name}"))),
        Event::Claim { name, class, target, owner } => {
            let mut claim = claim(&format!("claim-{name}"), class_name(class).as_deref());
            claim.spec.target_name = target.map(|target| object_name(&format!("target-{target}")));
            if let Some(owner) = owner {
                claim.annotate(OWNER, &format!("owner-{owner}"));
            }
            cluster.add_claim(claim);
        }
        Event::ClaimDeleted(name) => cluster.delete_claim(&format!("claim-{name}")),
        Event::ClaimForced(name) => {
            let name = format!("claim-{name}");
            cluster.delete_claim(&name);
            cluster.change_claim(&name, |claim| claim.remove_finalizer(FINALIZER));
        }
        Event::Target { name, class, claim } => {
            let mut target = target(&format!("target-{name}"), class_name(class).as_deref());
            target.spec.claim_ref =
                claim.map(|claim| ClaimRef { name: object_name(&format!("claim-{claim}")), uid: None });
            cluster.add_target(target);
        }
        Event::TargetDeleted(which) => {
            if let Some(name) = cluster.has.targets.keys().nth(*which).cloned() {
                cluster.delete_target(&name);
            }
        }
        Event::TargetFreed(which) => {
            if let Some(name) = cluster.has.targets.keys().nth(*which).cloned() {
                cluster.change_target(&name, |target| {
                    target.metadata.labels.get_or_insert_default().remove(RELEASED);
                });
            }
        }
        Event::NamespaceDeleted { which, stuck } => {
            if let Some(name) = cluster.namespaces.keys().nth(*which).cloned() {
                cluster.delete_namespace(&name, *stuck);
            }
        }
        Event::NamespacesFreed => cluster.free_namespaces(),
        Event::TargetBroken { name, is_final } => {
            let defect = if *is_final {
                TargetDefect::SecretNotFound(object_name("far"))
            } else {
                TargetDefect::Unavailable("connection refused".to_owned())
            };
            cluster.defects.insert(format!("target-{name}"), defect);
        }
        Event::TargetMended(name) => drop(cluster.defects.remove(&format!("target-{name}"))),
        Event::Later(seconds) => cluster.later(*seconds),
        Event::Restart => {
            cluster.seen = wasmspawner_core::custom_resource::environment::World::default();
            cluster.see_all();
        }
        Event::See(kind) => cluster.see(*kind),
        Event::Work { some } => {
            for (number, action) in cluster.decide().into_iter().enumerate() {
                if some >> (number % 32) & 1 == 1 {
                    cluster.apply(&action);
                }
            }
        }
    }
}

/// Checks the invariants that hold at every moment, whatever the service has seen.
fn nothing_is_lost(cluster: &Cluster, released: &mut BTreeMap<String, String>) {
    for (name, uid) in &cluster.namespaces {
        let target = cluster.has.targets.values().find(|target| target.uid() == uid);
        assert!(target.is_some(), "the namespace {name} is left behind without its target");
    }
    // A released target that still has its label never changes its owner.
    for target in cluster.has.targets.values() {
        let owner = target.annotation(OWNER).unwrap_or_default().to_owned();
        if target.is_released() {
            released.insert(target.uid().to_owned(), owner);
        }
    }
}

/// Checks the conditions that hold when there is nothing left to do.
fn everything_is_settled(cluster: &Cluster) {
    let has = &cluster.has;
    for claim in has.claims.values() {
        assert!(claim.is_deleting() || claim.has_finalizer(FINALIZER));
        let name = claim.spec.target_name.as_ref().map_or("", |name| name.as_str());
        let target = has.targets.get(name).filter(|target| target.is_for(claim));
        match claim.status.phase {
            Some(ClaimPhase::Bound) if !claim.is_deleting() => {
                let target = target.unwrap_or_else(|| panic!("{} is bound to nothing", claim.name()));
                assert!(target.is_deleting() || target.status.phase == Some(TargetPhase::Bound));
            }
            None => panic!("{} was overlooked", claim.name()),
            _ => {}
        }
    }
    for target in has.targets.values() {
        assert!(target.is_deleting() || target.has_finalizer(FINALIZER));
        let bound = |claim: &&Claim| {
            claim.is_bound() && claim.spec.target_name.as_ref().is_some_and(|name| *name == *target.name())
        };
        let count = has.claims.values().filter(bound).filter(|claim| target.is_for(claim)).count();
        assert!(count <= 1, "{} is bound to {count} claims", target.name());
        if target.status.phase == Some(TargetPhase::Bound) && !target.is_deleting() {
            assert_eq!(count, 1, "{} says that it is bound", target.name());
        }
        if target.is_deleting() {
            assert_eq!(
                target.status.phase,
                Some(TargetPhase::Failed),
                "{} hangs without a word",
                target.name()
            );
        }
    }
}

/// The number of schedules, unless `PROPTEST_CASES` sets another.
const SCHEDULES: u32 = 2_000;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(SCHEDULES),
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_binding_is_one_to_one_and_nothing_is_left_behind(events in events()) {
        let mut cluster = Cluster::default();
        let mut released = BTreeMap::new();
        for event in &events {
            happen(&mut cluster, event);
            nothing_is_lost(&cluster, &mut released);
        }
        // Every retained target belongs to its owner or to nobody, unless an administrator has freed it.
        let freed = events.iter().any(|event| matches!(event, Event::TargetFreed(_)));
        cluster.settle();
        // Two minutes later, everything that is being deleted is gone, or has failed with the reason.
        cluster.later(121);
        cluster.settle();
        everything_is_settled(&cluster);
        for target in cluster.has.targets.values() {
            if let Some(owner) = released.get(target.uid()).filter(|_| !freed) {
                prop_assert_eq!(target.annotation(OWNER).unwrap_or_default(), owner);
            }
        }
        // Once nothing is stuck, everything is deleted.
        cluster.free_namespaces();
        for name in cluster.has.claims.keys().cloned().collect::<Vec<_>>() {
            cluster.delete_claim(&name);
        }
        cluster.has.classes.clear();
        cluster.settle();
        prop_assert!(cluster.has.claims.is_empty(), "{:#?}", cluster.has.claims);
        for name in cluster.has.targets.keys().cloned().collect::<Vec<_>>() {
            cluster.delete_target(&name);
        }
        cluster.settle();
        prop_assert!(cluster.has.targets.is_empty(), "{:#?}", cluster.has.targets);
        prop_assert!(cluster.namespaces.is_empty(), "{:#?}", cluster.namespaces);
    }
}
