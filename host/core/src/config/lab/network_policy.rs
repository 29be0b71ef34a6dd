use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::PeerRange;
use crate::names::NamespaceName;

/// The network traffic that labs may receive and send. All other traffic into a lab is denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkPolicyConfig {
    /// Whether labs get a NetworkPolicy.
    pub enabled: bool,
    /// The namespace of JupyterHub, for the default of `ingress`. Default: the service's own, `kubernetes.namespace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub_namespace: Option<NamespaceName>,
    /// Who may connect to the lab's port. Default: the Hub and its proxy in the Hub's namespace, by the labels that Zero
    /// to JupyterHub gives them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Vec<NetworkPeer>>,
    /// What labs may connect to. Absent: everything except `blocked`. `[]`: nothing.
    pub egress: Option<Vec<EgressRule>>,
    /// Addresses that labs may not connect to, unless `egress` is set. Default: link-local addresses, where clouds serve
    /// the credentials of their machines (`NodeLocal DNSCache` stays allowed). Add those of the Kubernetes API server.
    pub blocked: Vec<PeerRange>,
}

impl Default for NetworkPolicyConfig {
    fn default() -> Self {
        let blocked = [
            PeerRange::constant(IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
            PeerRange::constant(IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
            // Amazon's metadata service under its IPv6 address.
            PeerRange::constant(IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)), 128),
        ];
        Self { enabled: true, hub_namespace: None, ingress: None, egress: None, blocked: blocked.to_vec() }
    }
}

impl NetworkPolicyConfig {
    /// Who may connect to labs.
    pub fn peers(&self) -> Vec<NetworkPeer> {
        self.ingress
            .clone()
            .unwrap_or_else(|| ["hub", "proxy"].map(|component| self.of_hub(component)).into())
    }

    /// A part of Zero to JupyterHub. Without the namespace, anybody who may create a pod somewhere could give it these
    /// labels.
    fn of_hub(&self, component: &str) -> NetworkPeer {
        let labels = |labels: &[(&str, &str)]| {
            labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let namespace = self.hub_namespace.as_ref().map(|name| labels(&[(NAMESPACE_LABEL, name.as_str())]));
        NetworkPeer {
            namespace_labels: namespace,
            pod_labels: Some(labels(&[("app", "jupyterhub"), ("component", component)])),
            cidr: None,
            except: Vec::new(),
        }
    }
}

/// The label with a namespace's name, which Kubernetes sets itself.
const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// The other side of a connection: pods, selected by labels, or a range of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkPeer {
    /// Labels of the pods' namespace. `{}` means any namespace; absent means the lab's own.
    pub namespace_labels: Option<BTreeMap<String, String>>,
    /// Labels of the pods. `{}` or absent means any pod.
    pub pod_labels: Option<BTreeMap<String, String>>,
    /// A range of addresses instead of pods, such as `10.0.0.0/8`.
    pub cidr: Option<String>,
    /// Ranges inside `cidr` that are excluded.
    pub except: Vec<String>,
}

/// Destinations that labs may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EgressRule {
    /// The destinations; empty for all.
    pub to: Vec<NetworkPeer>,
    /// The ports; empty for all.
    pub ports: Vec<NetworkPort>,
}

/// A port and its protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkPort {
    /// The port's number.
    pub port: u16,
    /// The protocol.
    #[serde(default)]
    pub protocol: Protocol,
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP, which DNS needs.
    Udp,
}
