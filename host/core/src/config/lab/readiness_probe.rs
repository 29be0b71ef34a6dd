use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the kubelet checks that a lab answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReadinessProbe {
    /// Path of an HTTP GET request, relative to the lab's base URL (`JUPYTERHUB_SERVICE_PREFIX`). `null`: only check
    /// that the port accepts connections.
    pub path: Option<String>,
    /// Seconds between two probes while the lab starts.
    #[schemars(range(min = 1))]
    pub period_seconds: u16,
    /// Seconds between two probes after the first success. Each probe is work for the kubelet and a line in the lab's
    /// log for the whole life of the lab.
    #[schemars(range(min = 1))]
    pub running_period_seconds: u16,
    /// Time limit of one probe in seconds.
    #[schemars(range(min = 1))]
    pub timeout_seconds: u16,
    /// Failures in a row before a ready lab counts as not ready.
    #[schemars(range(min = 1))]
    pub failure_threshold: u16,
}

impl Default for ReadinessProbe {
    /// Jupyter Server answers `api` with its version and requires no login for it.
    fn default() -> Self {
        Self {
            path: Some("api".to_owned()),
            period_seconds: 1,
            running_period_seconds: 30,
            timeout_seconds: 5,
            failure_threshold: 3,
        }
    }
}
