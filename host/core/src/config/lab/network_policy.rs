use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who may reach a lab, and whom it may reach. Everything else into the lab is denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkPolicyConfig {
    /// Whether labs get a NetworkPolicy.
    pub enabled: bool,
    /// Who reaches the lab's port: the Hub and its proxy.
    pub ingress: Vec<NetworkPeer>,
    /// Whom labs reach; absent for everyone, `[]` for nobody.
    pub egress: Option<Vec<EgressRule>>,
}

impl Default for NetworkPolicyConfig {
    /// The labels that Zero to JupyterHub gives to Hub and proxy, in any namespace.
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

/// One side of a connection: pods by their labels, or addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkPeer {
    /// Labels of the pods' namespace; `{}` for any, absent for the lab's own.
    pub namespace_labels: Option<BTreeMap<String, String>>,
    /// Labels of the pods; `{}` or absent for any.
    pub pod_labels: Option<BTreeMap<String, String>>,
    /// Addresses instead of pods, such as `10.0.0.0/8`.
    pub cidr: Option<String>,
    /// Addresses within `cidr` that do not count.
    pub except: Vec<String>,
}

/// Where labs may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EgressRule {
    /// Whom; empty for everyone.
    pub to: Vec<NetworkPeer>,
    /// On which ports; empty for all.
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
    /// The usual one.
    #[default]
    Tcp,
    /// Name resolution, among others.
    Udp,
}
