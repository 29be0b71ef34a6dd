use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::metadata::{self};
use crate::config::lab::{EgressRule, NetworkPeer, NetworkPort, Protocol};
use crate::labels::{SERVER_LABEL, USER_LABEL};
use crate::policy::ValidatedSpawn;

/// Allows traffic to the lab's port from the configured peers. Listing `Ingress` in `policyTypes` denies all other.
pub(super) fn build(spawn: &ValidatedSpawn) -> Option<NetworkPolicy> {
    let config = &spawn.config.network_policy;
    if !config.enabled {
        return None;
    }
    let lab_port = NetworkPort { port: spawn.config.port, protocol: Protocol::Tcp };
    let ingress = NetworkPolicyIngressRule {
        from: Some(config.ingress.iter().map(peer).collect()),
        ports: Some(vec![port(&lab_port)]),
    };
    let egress = config.egress.as_ref().map(|rules| rules.iter().map(egress_rule).collect());
    let mut types = vec!["Ingress".to_owned()];
    types.extend(egress.is_some().then(|| "Egress".to_owned()));
    Some(NetworkPolicy {
        metadata: metadata::of_lab(spawn, &spawn.names.object),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector {
                match_labels: Some(lab_labels(spawn)),
                match_expressions: None,
            }),
            policy_types: Some(types),
            // A rule without peers would allow all sources.
            ingress: (!config.ingress.is_empty()).then(|| vec![ingress]),
            egress,
        }),
    })
}

fn lab_labels(spawn: &ValidatedSpawn) -> BTreeMap<String, String> {
    BTreeMap::from([
        (USER_LABEL.to_owned(), spawn.names.user_label.to_string()),
        (SERVER_LABEL.to_owned(), spawn.names.server_label.to_string()),
    ])
}

fn egress_rule(rule: &EgressRule) -> NetworkPolicyEgressRule {
    NetworkPolicyEgressRule {
        to: (!rule.to.is_empty()).then(|| rule.to.iter().map(peer).collect()),
        ports: (!rule.ports.is_empty()).then(|| rule.ports.iter().map(port).collect()),
    }
}

fn peer(peer: &NetworkPeer) -> NetworkPolicyPeer {
    let selector = |labels: &BTreeMap<String, String>| LabelSelector {
        match_labels: (!labels.is_empty()).then(|| labels.clone()),
        match_expressions: None,
    };
    if let Some(cidr) = &peer.cidr {
        let except = (!peer.except.is_empty()).then(|| peer.except.clone());
        let block = IPBlock { cidr: cidr.clone(), except };
        return NetworkPolicyPeer { ip_block: Some(block), ..NetworkPolicyPeer::default() };
    }
    NetworkPolicyPeer {
        namespace_selector: peer.namespace_labels.as_ref().map(selector),
        // Kubernetes refuses a peer without any selector; without labels the peer means the pods of the lab's own
        // namespace.
        pod_selector: peer
            .pod_labels
            .as_ref()
            .map(selector)
            .or_else(|| peer.namespace_labels.is_none().then(LabelSelector::default)),
        ip_block: None,
    }
}

fn port(port: &NetworkPort) -> NetworkPolicyPort {
    let protocol = match port.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    };
    NetworkPolicyPort {
        port: Some(IntOrString::Int(port.port.into())),
        protocol: Some(protocol.to_owned()),
        ..NetworkPolicyPort::default()
    }
}
