//! Each rule of the binder, and its effect on targets.

use wasmspawner_core::custom_resource::environment::{
    BIND_COMPLETE, BOUND_BY_CONTROLLER, ClaimPhase, ClaimRef, DT_PROVISIONER, FINALIZER, PROVISIONED_BY,
    RELEASED, ReclaimPolicy, TargetPhase, TargetSelector,
};

use crate::cluster::{Cluster, claim, class, object_name, owned, target};

pub(crate) fn phase(cluster: &Cluster, claim: &str) -> Option<ClaimPhase> {
    cluster.has.claims.get(claim)?.status.phase
}

pub(crate) fn target_phase(cluster: &Cluster, target: &str) -> Option<TargetPhase> {
    cluster.has.targets.get(target)?.status.phase
}

pub(crate) fn problem(cluster: &Cluster, claim: &str) -> Option<String> {
    cluster.has.claims[claim].problem().map(|problem| problem.reason.clone())
}

pub(crate) fn target_of(cluster: &Cluster, claim: &str) -> Option<String> {
    cluster.has.claims[claim].spec.target_name.as_ref().map(ToString::to_string)
}

/// A cluster whose only target belonged to ada, and the name of the target.
fn released_by_ada() -> (Cluster, String) {
    let mut cluster = Cluster::default();
    cluster.add_class(class("kept", ReclaimPolicy::Retain, 0));
    cluster.add_claim(owned("lab-ada", "kept", "ada"));
    cluster.settle();
    let name = target_of(&cluster, "lab-ada").unwrap();
    cluster.delete_claim("lab-ada");
    cluster.settle();
    (cluster, name)
}

#[test]
fn rule_1_everything_gets_the_finalizer_and_a_problem_becomes_a_condition() {
    let mut cluster = Cluster::default();
    cluster.add_claim(claim("lost-class", Some("nowhere")));
    cluster.add_target(target("mine", None));
    cluster.settle();
    assert!(cluster.has.claims["lost-class"].has_finalizer(FINALIZER));
    assert!(cluster.has.targets["mine"].has_finalizer(FINALIZER));
    assert_eq!(problem(&cluster, "lost-class").as_deref(), Some("ClassNotFound"));
    cluster.add_class(class("nowhere", ReclaimPolicy::Delete, 0));
    cluster.settle();
    assert_eq!(
        (phase(&cluster, "lost-class"), problem(&cluster, "lost-class")),
        (Some(ClaimPhase::Bound), None)
    );
}

#[test]
fn delete_and_retain_are_classes_without_an_object_until_there_is_one() {
    for (name, policy) in [("delete", ReclaimPolicy::Delete), ("retain", ReclaimPolicy::Retain)] {
        let mut cluster = Cluster::default();
        cluster.add_claim(owned("lab", name, "ada"));
        cluster.settle();
        assert_eq!(phase(&cluster, "lab"), Some(ClaimPhase::Bound));
        let target = target_of(&cluster, "lab").unwrap();
        assert_eq!(cluster.has.targets[&target].spec.reclaim_policy, Some(policy));

        // The site's own class of that name applies to targets that are made later.
        cluster.add_class(class(name, ReclaimPolicy::Retain, 0));
        cluster.add_claim(owned("later", name, "grace"));
        cluster.settle();
        let target = target_of(&cluster, "later").unwrap();
        assert_eq!(cluster.has.targets[&target].spec.reclaim_policy, Some(ReclaimPolicy::Retain));
    }
}

#[test]
fn rule_2_the_target_that_names_the_claim_comes_first_and_then_the_oldest_of_its_class() {
    let mut cluster = Cluster::default();
    cluster.add_target(target("of-another-class", Some("far")));
    cluster.add_target(target("of-no-class", None));
    cluster.later(1);
    cluster.add_target(target("oldest", Some("near")));
    cluster.later(1);
    cluster.add_target(target("younger", Some("near")));
    let mut unready = target("unready", Some("near"));
    unready.spec.kubernetes_credentials = None;
    cluster.add_target(unready);
    let mut named = target("named", Some("near"));
    named.spec.claim_ref = Some(ClaimRef { name: object_name("second"), uid: None });
    cluster.add_target(named);
    for name in ["first", "second", "third"] {
        cluster.later(1);
        cluster.add_claim(claim(name, Some("near")));
    }
    cluster.settle();
    let got = ["first", "second", "third"].map(|claim| target_of(&cluster, claim).unwrap());
    assert_eq!(got, ["oldest", "named", "younger"]);
    assert!(cluster.has.claims["first"].annotation(BOUND_BY_CONTROLLER).is_some());
}

#[test]
fn rule_2_a_claim_marked_for_a_provisioner_takes_only_a_target_that_names_it() {
    let mut cluster = Cluster::default();
    let mut marked = claim("marked", Some("near"));
    marked.annotate(DT_PROVISIONER, "example.org/other");
    cluster.add_claim(marked);
    cluster.add_target(target("free", Some("near")));
    cluster.settle();
    assert_eq!(phase(&cluster, "marked"), Some(ClaimPhase::Pending));
    let mut made = target("made", Some("near"));
    made.spec.claim_ref = Some(ClaimRef { name: object_name("marked"), uid: None });
    made.annotate(PROVISIONED_BY, "example.org/other");
    cluster.add_target(made);
    cluster.settle();
    assert_eq!(target_of(&cluster, "marked").as_deref(), Some("made"));
}

#[test]
fn rule_3_a_claim_without_a_target_is_marked_with_the_provisioner_of_its_class() {
    let mut cluster = Cluster::default();
    let mut foreign = class("foreign", ReclaimPolicy::Delete, 0);
    foreign.spec.provisioner = "example.org/other".to_owned();
    cluster.add_class(foreign);
    cluster.add_claim(claim("theirs", Some("foreign")));
    cluster.add_claim(claim("of-no-class", None));
    cluster.settle();
    let theirs = &cluster.has.claims["theirs"];
    assert_eq!(theirs.annotation(DT_PROVISIONER), Some("example.org/other"));
    assert_eq!(phase(&cluster, "theirs"), Some(ClaimPhase::Pending));
    let without = &cluster.has.claims["of-no-class"];
    assert_eq!(
        (without.annotation(DT_PROVISIONER), phase(&cluster, "of-no-class")),
        (None, Some(ClaimPhase::Pending))
    );
    assert!(cluster.has.targets.is_empty(), "another provisioner's claims are left alone");
}

#[test]
fn rule_4_a_named_target_is_taken_or_waited_for() {
    let mut cluster = Cluster::default();
    let mut wants = claim("wants", None);
    wants.spec.target_name = Some(object_name("mine"));
    cluster.add_claim(wants.clone());
    cluster.settle();
    assert_eq!((phase(&cluster, "wants"), problem(&cluster, "wants")), (Some(ClaimPhase::Pending), None));
    cluster.add_target(target("mine", Some("any")));
    cluster.settle();
    assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Bound));
    assert!(cluster.has.claims["wants"].annotation(BOUND_BY_CONTROLLER).is_none(), "its owner has chosen");
    wants.metadata.name = Some("too-late".to_owned());
    cluster.later(1);
    cluster.add_claim(wants);
    cluster.settle();
    assert_eq!(phase(&cluster, "too-late"), Some(ClaimPhase::Pending));
    assert_eq!(problem(&cluster, "too-late").as_deref(), Some("TargetTaken"));
}

#[test]
fn rule_5_binding_is_one_to_one_and_written_on_both() {
    let mut cluster = Cluster::default();
    cluster.add_target(target("only", Some("near")));
    for name in ["first", "second"] {
        cluster.later(1);
        cluster.add_claim(claim(name, Some("near")));
    }
    cluster.settle();
    assert_eq!(phase(&cluster, "first"), Some(ClaimPhase::Bound));
    assert_eq!(phase(&cluster, "second"), Some(ClaimPhase::Pending));
    assert!(cluster.has.claims["first"].annotation(BIND_COMPLETE).is_some());
    let reference = cluster.has.targets["only"].spec.claim_ref.clone().unwrap();
    assert_eq!(
        (reference.name.as_str(), reference.uid.as_deref()),
        ("first", Some(cluster.has.claims["first"].uid()))
    );
    assert_eq!(target_phase(&cluster, "only"), Some(TargetPhase::Bound));
}

#[test]
fn rule_5_several_targets_for_one_claim_are_an_error() {
    let mut cluster = Cluster::default();
    for name in ["one", "two"] {
        let mut named = target(name, Some("near"));
        named.spec.claim_ref = Some(ClaimRef { name: object_name("wanted"), uid: None });
        cluster.add_target(named);
    }
    cluster.add_claim(claim("wanted", Some("near")));
    cluster.settle();
    assert_eq!(problem(&cluster, "wanted").as_deref(), Some("SeveralTargets"));
    cluster.delete_target("one");
    cluster.settle();
    assert_eq!(target_of(&cluster, "wanted").as_deref(), Some("two"));
}

#[test]
fn rule_6_a_claim_without_its_target_is_lost_until_that_comes_back() {
    let mut cluster = Cluster::default();
    cluster.add_target(target("mine", None));
    cluster.add_claim(claim("wants", None));
    cluster.settle();
    cluster.delete_target("mine");
    cluster.settle();
    assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Lost));
    assert!(!cluster.has.claims["wants"].is_deleting());
    cluster.add_target(target("mine", None));
    cluster.settle();
    assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Bound));
}

#[test]
fn rule_8_a_deleted_claim_takes_its_target_and_namespace_along() {
    let mut cluster = Cluster::default();
    cluster.add_class(class("fresh", ReclaimPolicy::Delete, 0));
    cluster.add_claim(claim("wants", Some("fresh")));
    cluster.settle();
    assert_eq!(cluster.namespaces.len(), 1);
    let namespace = cluster.namespaces.keys().next().unwrap().clone();
    cluster.delete_claim("wants");
    cluster.delete_namespace(&namespace, true);
    cluster.settle();
    assert!(cluster.has.claims["wants"].is_deleting(), "it waits for its target");
    cluster.free_namespaces();
    cluster.settle();
    assert!(cluster.has.claims.is_empty() && cluster.has.targets.is_empty() && cluster.namespaces.is_empty());
}

#[test]
fn rule_8_and_10_a_retained_target_goes_to_the_same_owner_again_and_to_nobody_else() {
    let (mut cluster, name) = released_by_ada();
    assert!(cluster.has.claims.is_empty());
    assert_eq!((target_phase(&cluster, &name), cluster.namespaces.len()), (Some(TargetPhase::Released), 1));
    assert_eq!(cluster.has.targets[&name].spec.claim_ref, None);

    cluster.add_claim(owned("lab-grace", "kept", "grace"));
    cluster.add_claim(claim("nobodys", Some("kept")));
    let mut thief = claim("thief", Some("kept"));
    thief.spec.target_name = Some(object_name(&name));
    cluster.add_claim(thief);
    cluster.settle();
    assert_ne!(target_of(&cluster, "lab-grace").unwrap(), name);
    assert_ne!(target_of(&cluster, "nobodys").unwrap(), name);
    assert_eq!(problem(&cluster, "thief").as_deref(), Some("TargetReleased"));
    cluster.delete_claim("thief");

    cluster.add_claim(owned("lab-ada", "kept", "ada"));
    cluster.settle();
    assert_eq!(target_of(&cluster, "lab-ada").unwrap(), name);
    assert_eq!(target_phase(&cluster, &name), Some(TargetPhase::Bound));
}

#[test]
fn rule_10_an_administrator_frees_a_released_target() {
    let (mut cluster, name) = released_by_ada();
    cluster.change_target(&name, |target| {
        target.metadata.labels.as_mut().unwrap().remove(RELEASED);
    });
    cluster.settle();
    assert_eq!(target_phase(&cluster, &name), Some(TargetPhase::Available));
    cluster.add_claim(owned("lab-grace", "kept", "grace"));
    cluster.settle();
    assert_eq!(target_of(&cluster, "lab-grace").unwrap(), name);
}

#[test]
fn a_class_that_is_gone_loses_nothing() {
    let mut cluster = Cluster::default();
    cluster.add_target(target("theirs", Some("vanished")));
    cluster.add_claim(claim("wants", Some("vanished")));
    cluster.settle();
    cluster.delete_claim("wants");
    cluster.settle();
    assert_eq!(target_phase(&cluster, "theirs"), Some(TargetPhase::Released));
}

#[test]
fn a_claim_that_is_deleted_before_it_was_bound_leaves_nothing() {
    let mut cluster = Cluster::default();
    cluster.add_class(class("kept", ReclaimPolicy::Retain, 0));
    cluster.add_claim(owned("lab-ada", "kept", "ada"));
    for _ in 0..2 {
        cluster.see_all();
        for action in cluster.decide() {
            cluster.apply(&action);
        }
    }
    assert_eq!(cluster.has.targets.len(), 1);
    cluster.delete_claim("lab-ada");
    cluster.settle();
    assert!(cluster.has.claims.is_empty() && cluster.has.targets.is_empty() && cluster.namespaces.is_empty());
}

#[test]
fn rule_9_a_namespace_that_does_not_go_is_a_failure_after_two_minutes_and_recovers() {
    let mut cluster = Cluster::default();
    cluster.add_class(class("fresh", ReclaimPolicy::Delete, 0));
    cluster.add_claim(claim("wants", Some("fresh")));
    cluster.settle();
    let name = target_of(&cluster, "wants").unwrap();
    let namespace = cluster.namespaces.keys().next().unwrap().clone();
    cluster.delete_namespace(&namespace, true);
    cluster.delete_target(&name);
    cluster.settle();
    assert_eq!(target_phase(&cluster, &name), Some(TargetPhase::Bound));
    cluster.later(119);
    cluster.settle();
    assert_eq!(target_phase(&cluster, &name), Some(TargetPhase::Bound));
    cluster.later(1);
    cluster.settle();
    assert_eq!(target_phase(&cluster, &name), Some(TargetPhase::Failed));
    let said = &cluster.has.targets[&name].status.conditions[0];
    assert_eq!(said.reason, "UnableToTerminate");
    assert!(said.message.contains("a pod has a finalizer"), "{}", said.message);
    cluster.free_namespaces();
    cluster.settle();
    assert!(cluster.has.targets.is_empty());
    assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Lost));
}

#[test]
fn rule_11_a_pool_is_kept_full_and_a_claim_takes_from_it() {
    let mut cluster = Cluster::default();
    cluster.add_class(class("pooled", ReclaimPolicy::Delete, 3));
    cluster.settle();
    assert_eq!(cluster.namespaces.len(), 3);
    cluster.add_claim(claim("wants", Some("pooled")));
    cluster.see_all();
    let actions = cluster.decide();
    for action in &actions {
        cluster.apply(action);
    }
    cluster.see_all();
    for action in cluster.decide() {
        cluster.apply(&action);
    }
    assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Bound), "two passes and no namespace later");
    cluster.settle();
    assert_eq!(cluster.namespaces.len(), 4, "the pool is full again");
    cluster.has.classes.get_mut("pooled").unwrap().spec.pool_size = 1;
    cluster.settle();
    assert_eq!(cluster.namespaces.len(), 2);
    assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Bound));
}

#[test]
fn rule_12_a_target_that_its_owner_brings_keeps_its_namespace() {
    let mut cluster = Cluster::default();
    cluster.add_class(class("brought", ReclaimPolicy::Delete, 0));
    cluster.namespaces.insert("theirs".to_owned(), String::new());
    let mut named = target("theirs", Some("brought"));
    named.spec.claim_ref = Some(ClaimRef { name: object_name("wants"), uid: None });
    cluster.add_target(named);
    cluster.add_claim(claim("wants", Some("brought")));
    cluster.settle();
    assert_eq!(target_of(&cluster, "wants").as_deref(), Some("theirs"));
    cluster.delete_claim("wants");
    cluster.settle();
    assert!(cluster.has.targets.is_empty(), "its class says Delete");
    assert!(cluster.namespaces.contains_key("theirs") && cluster.terminating.is_empty());
}

#[test]
fn rule_14_a_claim_with_a_selector_takes_a_target_with_these_labels_and_nothing_is_made_for_it() {
    let selecting = |name: &str, label: (&str, &str)| {
        let mut claim = claim(name, Some("mixed"));
        let match_labels = [label].map(|(label, value)| (label.to_owned(), value.to_owned())).into();
        claim.spec.selector = Some(TargetSelector { match_labels });
        claim
    };
    let mut cluster = Cluster::default();
    cluster.add_class(class("mixed", ReclaimPolicy::Delete, 0));
    for (name, gpu) in [("plain", None), ("small", Some("t4")), ("large", Some("h100"))] {
        cluster.later(1);
        let mut target = target(name, Some("mixed"));
        target.metadata.labels = gpu.map(|gpu| [("gpu".to_owned(), gpu.to_owned())].into());
        cluster.add_target(target);
    }
    for (name, label) in
        [("wants-h100", ("gpu", "h100")), ("wants-a100", ("gpu", "a100")), ("wants-zone", ("zone", "b"))]
    {
        cluster.later(1);
        cluster.add_claim(selecting(name, label));
    }
    cluster.settle();
    assert_eq!(target_of(&cluster, "wants-h100").as_deref(), Some("large"));
    for waiting in ["wants-a100", "wants-zone"] {
        assert_eq!(phase(&cluster, waiting), Some(ClaimPhase::Pending));
        assert!(!cluster.has.claims[waiting].is_dynamic());
    }
    assert!(cluster.namespaces.is_empty(), "the provisioner does not know what a label promises");
    cluster.add_claim(claim("any", Some("mixed")));
    cluster.settle();
    assert_eq!(target_of(&cluster, "any").as_deref(), Some("plain"));
}
