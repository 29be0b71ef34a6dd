//! Targets that the service did not make itself: their checks, and what claims and labs learn from them.

use wasmspawner_core::custom_resource::environment::{
    Claim, ClaimPhase, ClaimRef, ClaimState, EnvironmentPhase, ReclaimPolicy, TargetDefect, TargetPhase,
    TargetSelector,
};

use crate::cluster::{Cluster, claim, class, environment, object_name, owned, target};
use crate::rules::{phase, problem, target_of, target_phase};

/// Each defect, and whether a lab fails at once because of it.
fn defects() -> [(TargetDefect, bool); 6] {
    let (secret, namespace) = (object_name("far"), target("theirs", None).namespace().unwrap().to_owned());
    let namespace = wasmspawner_core::names::NamespaceName::parse(&namespace).unwrap();
    [
        (TargetDefect::SecretNotFound(secret.clone()), true),
        (TargetDefect::InvalidCredentials { secret: secret.clone(), problem: "no token".to_owned() }, true),
        (TargetDefect::Unauthorized(secret), true),
        (TargetDefect::NamespaceNotFound(namespace.clone()), true),
        (TargetDefect::MissingPermissions { namespace, missing: vec!["create pods".to_owned()] }, true),
        (TargetDefect::Unavailable("connection refused".to_owned()), false),
    ]
}

/// The claims that have or will have the target `theirs` and no other: by its name, and because it names them.
fn claims_of_theirs() -> [(Claim, Option<ClaimRef>); 2] {
    let mut named = claim("wants", None);
    named.spec.target_name = Some(object_name("theirs"));
    let reference = ClaimRef { name: object_name("wants"), uid: None };
    [(named, None), (claim("wants", Some("brought")), Some(reference))]
}

#[test]
fn rule_13_a_target_in_which_labs_cannot_run_is_not_bound_and_everything_says_why() {
    for (defect, is_final) in defects() {
        for (claim, reference) in claims_of_theirs() {
            let mut cluster = Cluster::default();
            let mut brought = class("brought", ReclaimPolicy::Retain, 0);
            brought.spec.provisioner = "example.org/people".to_owned();
            cluster.add_class(brought);
            let mut theirs = target("theirs", Some("brought"));
            theirs.spec.claim_ref = reference;
            cluster.add_target(theirs);
            cluster.add_claim(claim);
            cluster.add_environment(environment("place", "wants"));
            cluster.defects.insert("theirs".to_owned(), defect.clone());
            cluster.settle();
            let expected = if is_final { TargetPhase::Failed } else { TargetPhase::Pending };
            assert_eq!(target_phase(&cluster, "theirs"), Some(expected), "{defect:?}");
            assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Pending), "{defect:?}");
            let place = &cluster.has.environments["place"];
            assert_eq!(place.status.phase, Some(EnvironmentPhase::Unbound));
            let said = [
                cluster.has.targets["theirs"].problem(),
                cluster.has.claims["wants"].problem(),
                place.problem(),
            ];
            for said in said.map(Option::unwrap) {
                assert_eq!((said.reason.as_str(), &said.message), (defect.reason(), &defect.to_string()));
            }
            let state = cluster.seen.claim_state("wants");
            let expected = if is_final {
                ClaimState::Failed(defect.reason().to_owned(), defect.to_string())
            } else {
                ClaimState::Waiting(Some(defect.to_string()))
            };
            assert_eq!(state, expected);

            cluster.defects.clear();
            cluster.later(14);
            cluster.settle();
            assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Pending), "checked again too early");
            cluster.later(1);
            cluster.settle();
            assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Bound), "{defect:?}");
            assert_eq!(target_phase(&cluster, "theirs"), Some(TargetPhase::Bound));
            assert!(matches!(cluster.seen.claim_state("wants"), ClaimState::Bound(_)));
            let place = &cluster.has.environments["place"];
            assert_eq!((place.status.phase, place.problem()), (Some(EnvironmentPhase::Bound), None));
        }
    }
}

#[test]
fn rule_13_a_bound_target_stays_bound_and_new_labs_are_told_of_the_defect() {
    for (defect, is_final) in defects() {
        let mut cluster = Cluster::default();
        cluster.add_target(target("theirs", None));
        cluster.add_claim(claim("wants", None));
        cluster.settle();
        cluster.defects.insert("theirs".to_owned(), defect.clone());
        cluster.later(299);
        cluster.settle();
        assert!(matches!(cluster.seen.claim_state("wants"), ClaimState::Bound(_)), "checked again too early");
        cluster.later(1);
        cluster.settle();
        assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Bound), "its labs run on");
        assert_eq!(problem(&cluster, "wants").as_deref(), Some(defect.reason()));
        let failed = matches!(cluster.seen.claim_state("wants"), ClaimState::Failed(..));
        assert_eq!(failed, is_final, "{defect:?}");

        // After a restart, nothing is known; what was said before stays until the target is checked.
        cluster.seen.checks.clear();
        for action in cluster.decide() {
            assert_eq!(action.about().0, "check", "{action:?}");
        }
        assert!(
            matches!(cluster.seen.claim_state("wants"), ClaimState::Bound(_)),
            "no lab waits for the check"
        );
        cluster.defects.clear();
        cluster.settle();
        assert_eq!(problem(&cluster, "wants"), None);
        assert!(matches!(cluster.seen.claim_state("wants"), ClaimState::Bound(_)));
    }
}

#[test]
fn rule_13_new_credentials_are_checked_at_once() {
    let mut cluster = Cluster::default();
    cluster.add_target(target("theirs", None));
    cluster.defects.insert("theirs".to_owned(), TargetDefect::SecretNotFound(object_name("far")));
    cluster.add_claim(claim("wants", None));
    cluster.settle();
    assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Pending));
    cluster.defects.clear();
    cluster.change_target("theirs", |target| {
        let credentials = target.spec.kubernetes_credentials.as_mut().unwrap();
        credentials.cluster_credentials_secret = Some(object_name("another"));
    });
    cluster.settle();
    assert_eq!(phase(&cluster, "wants"), Some(ClaimPhase::Bound));
}

#[test]
fn rule_13_a_usable_target_is_taken_before_a_defective_one_and_the_provisioner_makes_one_where_it_can() {
    let mut cluster = Cluster::default();
    cluster.add_target(target("defective", Some("mixed")));
    cluster.defects.insert("defective".to_owned(), TargetDefect::SecretNotFound(object_name("far")));
    cluster.later(1);
    cluster.add_target(target("usable", Some("mixed")));
    cluster.add_class(class("mixed", ReclaimPolicy::Delete, 0));
    for name in ["first", "second"] {
        cluster.later(1);
        cluster.add_claim(claim(name, Some("mixed")));
    }
    cluster.settle();
    assert_eq!(target_of(&cluster, "first").as_deref(), Some("usable"));
    assert_eq!(phase(&cluster, "second"), Some(ClaimPhase::Bound));
    assert_eq!(problem(&cluster, "second"), None);
    assert_ne!(target_of(&cluster, "second").as_deref(), Some("defective"));
}

#[test]
fn rule_13_a_target_that_is_kept_for_its_owner_is_waited_for() {
    let mut cluster = Cluster::default();
    cluster.add_target(target("theirs", Some("brought")));
    cluster.add_claim(owned("lab-ada", "brought", "ada"));
    cluster.settle();
    cluster.delete_claim("lab-ada");
    cluster.settle();
    assert_eq!(target_phase(&cluster, "theirs"), Some(TargetPhase::Released));
    cluster.add_target(target("free", Some("brought")));
    cluster.defects.insert("theirs".to_owned(), TargetDefect::Unavailable("connection refused".to_owned()));
    cluster.later(300);
    cluster.settle();
    for owner in ["ada", "grace"] {
        cluster.add_claim(owned(&format!("lab-{owner}"), "brought", owner));
    }
    cluster.settle();
    assert_eq!(target_of(&cluster, "lab-grace").as_deref(), Some("free"));
    assert_eq!(problem(&cluster, "lab-ada").as_deref(), Some("ClusterUnavailable"));
    cluster.defects.clear();
    cluster.later(15);
    cluster.settle();
    assert_eq!(target_of(&cluster, "lab-ada").as_deref(), Some("theirs"));
}

/// Another target of the class may be freed or made, so a claim of the class waits, and says why.
#[test]
fn rule_13_a_claim_of_a_class_waits_for_another_target_while_one_is_defective() {
    for (defect, is_final) in defects() {
        for selects in [false, true] {
            let mut cluster = Cluster::default();
            let mut brought = class("brought", ReclaimPolicy::Retain, 0);
            brought.spec.provisioner = "example.org/people".to_owned();
            cluster.add_class(brought);
            let mut theirs = target("theirs", Some("brought"));
            theirs.metadata.labels = Some([("zone".to_owned(), "a".to_owned())].into());
            cluster.add_target(theirs);
            let mut wants = claim("wants", Some("brought"));
            let match_labels = [("zone".to_owned(), "a".to_owned())].into();
            wants.spec.selector = selects.then_some(TargetSelector { match_labels });
            cluster.add_claim(wants);
            cluster.defects.insert("theirs".to_owned(), defect.clone());
            cluster.settle();
            assert_eq!(problem(&cluster, "wants").as_deref(), Some("NoUsableTarget"));
            let ClaimState::Waiting(Some(why)) = cluster.seen.claim_state("wants") else {
                panic!("it does not wait: {:?}", cluster.seen.claim_state("wants"))
            };
            assert!(why.contains(&defect.to_string()), "{why}");
            // A provisioner that somebody runs is asked as if the target did not exist.
            assert_eq!(cluster.has.claims["wants"].is_dynamic(), is_final && !selects, "{defect:?}");
            cluster.defects.clear();
            cluster.later(15);
            cluster.settle();
            let expected = if is_final && !selects { ClaimPhase::Pending } else { ClaimPhase::Bound };
            assert_eq!(phase(&cluster, "wants"), Some(expected), "{defect:?}");
        }
    }
}
