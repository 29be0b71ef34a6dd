use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network traffic that labs may receive and send. All other traffic into a lab is denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkPolicyConfig {
    /// Whether labs get a NetworkPolicy.
    pub enabled: bool,
    /// Who may connect to the lab's port. Default: the Hub and its proxy.
    pub ingress: Vec<NetworkPeer>,
    /// What labs may connect to. Absent: everything. `[]`: nothing.
    pub egress: Option<Vec<EgressRule>>,
}

impl Default for NetworkPolicyConfig {
    /// The labels that Zero to JupyterHub gives the Hub and the proxy, in any namespace.
    fn default() -> Self {
        let component = |name: &str| NetworkPeer {
            namespace_labels: Some(BTreeMap::new()),
            pod_labels: Some(BTreeMap::from([
                ("app".to_owned(), "jupyterhub".to_owned()),
                ("component".to_owned(), name.to_owned()),
            ])),
            cidr: None,
            except: Vec::new(),
        };
        Self { enabled: true, ingress: vec![component("hub"), component("proxy")], egress: None }
    }
}

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
