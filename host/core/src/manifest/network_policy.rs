use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::metadata;
use crate::config::PeerRange;
use crate::config::lab::{EgressRule, NetworkPeer, NetworkPolicyConfig, NetworkPort, Protocol};
use crate::names::labels::{SERVER_LABEL, SPAWN_LABEL, USER_LABEL};
use crate::policy::ValidatedSpawn;

/// Allows traffic to the lab's port from the configured peers, and from the lab to all but the blocked addresses.
/// Listing `Ingress` in `policyTypes` denies all other incoming traffic.
pub(super) fn build(spawn: &ValidatedSpawn) -> Option<NetworkPolicy> {
    let config = &spawn.config.network_policy;
    if !config.enabled {
        return None;
    }
    let peers = config.peers();
    let lab_port = NetworkPort { port: spawn.port, protocol: Protocol::Tcp };
    let ingress = NetworkPolicyIngressRule {
        from: Some(peers.iter().map(peer).collect()),
        ports: Some(vec![port(&lab_port)]),
    };
    let egress = egress(config);
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
            ingress: (!peers.is_empty()).then(|| vec![ingress]),
            egress,
        }),
    })
}

fn egress(config: &NetworkPolicyConfig) -> Option<Vec<NetworkPolicyEgressRule>> {
    match &config.egress {
        Some(rules) => Some(rules.iter().map(egress_rule).collect()),
        None if config.blocked.is_empty() => None,
        None => Some([all_but(&config.blocked)].into_iter().chain(local_dns(&config.blocked)).collect()),
    }
}

/// Lets the lab and its children reach the ports of a child. The lab's own policy also applies to the child, because
/// the child has the lab's labels; this one adds the ports.
pub(super) fn of_child(spawn: &ValidatedSpawn, ports: &[u16]) -> Option<NetworkPolicy> {
    if !spawn.config.network_policy.enabled {
        return None;
    }
    // A child that outlives its lab needs its own rules for outgoing traffic.
    let egress = egress(&spawn.config.network_policy);
    let mut types = vec!["Ingress".to_owned()];
    types.extend(egress.is_some().then(|| "Egress".to_owned()));
    let own = BTreeMap::from([(SPAWN_LABEL.to_owned(), spawn.spawn.to_string())]);
    let of_lab = NetworkPeer { pod_labels: Some(lab_labels(spawn)), ..NetworkPeer::default() };
    let ports = ports.iter().map(|number| port(&NetworkPort { port: *number, protocol: Protocol::Tcp }));
    Some(NetworkPolicy {
        metadata: metadata::of_lab(spawn, &spawn.names.object),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector { match_labels: Some(own), match_expressions: None }),
            policy_types: Some(types),
            ingress: Some(vec![NetworkPolicyIngressRule {
                from: Some(vec![peer(&of_lab)]),
                ports: Some(ports.collect()),
            }]),
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

/// Allows everything except these addresses. Pods are listed separately, because some networks do not count them as
/// addresses.
fn all_but(blocked: &[PeerRange]) -> NetworkPolicyEgressRule {
    let family = |cidr: &str, ipv4: bool| NetworkPeer {
        cidr: Some(cidr.to_owned()),
        except: blocked.iter().filter(|range| range.is_ipv4() == ipv4).map(PeerRange::to_string).collect(),
        ..NetworkPeer::default()
    };
    let pods = NetworkPeer { namespace_labels: Some(BTreeMap::new()), ..NetworkPeer::default() };
    let to = [pods, family("0.0.0.0/0", true), family("::/0", false)];
    NetworkPolicyEgressRule { to: Some(to.iter().map(peer).collect()), ports: None }
}

/// The address of `NodeLocal DNSCache`, which many clusters run on every node. It is link-local, so it would be
/// blocked.
const LOCAL_DNS: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 20, 10));

fn local_dns(blocked: &[PeerRange]) -> Option<NetworkPolicyEgressRule> {
    let cache = NetworkPeer { cidr: Some(format!("{LOCAL_DNS}/32")), ..NetworkPeer::default() };
    let ports = [Protocol::Udp, Protocol::Tcp].map(|protocol| NetworkPort { port: 53, protocol });
    let rule = EgressRule { to: vec![cache], ports: ports.to_vec() };
    blocked.iter().any(|range| range.contains(LOCAL_DNS)).then(|| egress_rule(&rule))
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
