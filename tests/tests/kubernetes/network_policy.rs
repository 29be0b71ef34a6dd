//! The network policy of the service itself.

use std::collections::BTreeSet;

use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Api, PostParams};
use wasmspawner_core::config::HttpConfig;
use wasmspawner_tests::kubernetes::{Cluster, SKIPPED};

const FILE: &str = include_str!("../../../deploy/network-policy.yaml");

/// The ports on which the service can be reached.
fn ports_of_ingress(policy: &NetworkPolicy) -> BTreeSet<u16> {
    let rules = policy.spec.iter().flat_map(|spec| spec.ingress.iter().flatten());
    let number = |port: &NetworkPolicyPort| match port.port {
        Some(IntOrString::Int(port)) => u16::try_from(port).unwrap(),
        ref other => panic!("a rule for the port {other:?}"),
    };
    rules.flat_map(|rule| rule.ports.as_ref().expect("a rule without ports").iter().map(number)).collect()
}

#[tokio::test]
async fn the_service_s_network_policy_is_one_for_its_two_ports() {
    let mut policy: NetworkPolicy = serde_saphyr::from_str(FILE).unwrap();
    let listens = HttpConfig::default();
    let ports = [listens.listen.port(), listens.health_listen.port()].into();
    assert_eq!(ports_of_ingress(&policy), ports);
    for rule in policy.spec.iter().flat_map(|spec| spec.ingress.iter().flatten()) {
        assert!(rule.from.iter().flatten().all(|peer| peer.namespace_selector.is_some()), "{rule:?}");
    }
    let Some(cluster) = Cluster::enter("network-policy").await.unwrap() else { return println!("{SKIPPED}") };
    policy.metadata.namespace = Some(cluster.namespace.clone());
    let policies: Api<NetworkPolicy> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let accepted = policies.create(&PostParams::default(), &policy).await.unwrap();
    assert_eq!(accepted.spec, policy.spec, "the cluster knows all of its fields");
    cluster.leave().await.unwrap();
}
