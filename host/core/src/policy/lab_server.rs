use serde::{Deserialize, Serialize};

/// The port and the readiness check of the program in the lab's container, as a policy wants them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LabServer {
    /// The port on which the program listens. Needs the grant `ports: [port]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The check by which the kubelet finds out that the lab is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<LabProbe>,
}

/// The check by which the kubelet finds out that a lab is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabProbe {
    /// An HTTP GET request of this path returns a status from 200 to 399. A path that begins with `/` is complete; any
    /// other is relative to the lab's base URL.
    Http(String),
    /// The port accepts connections.
    Tcp,
    /// The container runs.
    None,
}
