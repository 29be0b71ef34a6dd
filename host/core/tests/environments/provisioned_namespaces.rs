//! The namespaces that the provisioner makes, and those that it leaves alone.

use wasmspawner_core::custom_resource::environment::{
    ClaimPhase, NAMESPACE, NAMESPACE_PROVISIONER, OWNER, PROVISIONED_BY, ReclaimPolicy,
};

use crate::cluster::{Cluster, claim, class, owned};
use crate::rules::{phase, target_of};

#[test]
fn rule_7_the_provisioner_makes_a_namespace_and_a_target_for_the_claim() {
    let mut cluster = Cluster::default();
    cluster.add_class(class("fresh", ReclaimPolicy::Delete, 0));
    let mut named = owned("lab-ada", "fresh", "ada");
    named.annotate(NAMESPACE, "nublado-ada");
    cluster.add_claim(named);
    cluster.add_claim(claim("nameless", Some("fresh")));
    cluster.settle();
    assert_eq!(phase(&cluster, "lab-ada"), Some(ClaimPhase::Bound));
    let made = &cluster.has.targets[&target_of(&cluster, "lab-ada").unwrap()];
    let credentials = made.spec.kubernetes_credentials.as_ref().unwrap();
    assert_eq!(credentials.default_namespace.as_str(), "nublado-ada");
    assert_eq!(
        (made.annotation(PROVISIONED_BY), made.annotation(OWNER)),
        (Some(NAMESPACE_PROVISIONER), Some("ada"))
    );
    assert!(
        cluster.namespaces.keys().any(|name| name.starts_with("env-nameless-r")),
        "{:?}",
        cluster.namespaces
    );
}

#[test]
fn rule_7_a_namespace_of_somebody_else_is_left_alone() {
    let mut cluster = Cluster::default();
    cluster.add_class(class("fresh", ReclaimPolicy::Delete, 0));
    cluster.namespaces.insert("kube-system".to_owned(), String::new());
    let mut greedy = claim("greedy", Some("fresh"));
    greedy.annotate(NAMESPACE, "kube-system");
    cluster.add_claim(greedy);
    cluster.settle();
    assert_eq!(phase(&cluster, "greedy"), Some(ClaimPhase::Pending));
    cluster.delete_claim("greedy");
    cluster.settle();
    assert!(cluster.has.claims.is_empty() && cluster.has.targets.is_empty());
    assert!(cluster.namespaces.contains_key("kube-system") && cluster.terminating.is_empty());
}

#[test]
fn rule_7_a_namespace_is_waited_for_while_another_target_leaves_it() {
    let mut cluster = Cluster::default();
    cluster.add_class(class("fresh", ReclaimPolicy::Delete, 0));
    let of_ada = |name: &str| {
        let mut claim = claim(name, Some("fresh"));
        claim.annotate(NAMESPACE, "nublado-ada");
        claim
    };
    cluster.add_claim(of_ada("first"));
    cluster.settle();
    cluster.add_claim(of_ada("second"));
    cluster.settle();
    let second = |cluster: &Cluster| {
        let other = cluster
            .has
            .targets
            .values()
            .find(|target| target.spec.claim_ref.as_ref().unwrap().name == "second");
        cluster.has.is_left_by_another(other.unwrap())
    };
    assert!(!second(&cluster), "the first one has it");
    let mut released = cluster.clone();
    let first = target_of(&cluster, "first").unwrap();
    released.change_target(&first, |target| target.spec.reclaim_policy = Some(ReclaimPolicy::Retain));
    released.delete_claim("first");
    assert!(!second(&released), "it is kept for the owner of the first one");
    cluster.delete_claim("first");
    assert!(second(&cluster), "the claim is being deleted, and its target is not yet");
    cluster.delete_namespace("nublado-ada", true);
    cluster.settle();
    assert!(second(&cluster), "the target is being deleted");
    cluster.free_namespaces();
    cluster.settle();
    assert_eq!(phase(&cluster, "second"), Some(ClaimPhase::Bound));
}
