use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the kubelet finds out that a lab answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReadinessProbe {
    /// Path of a `GET`, relative to the lab's base URL (`JUPYTERHUB_SERVICE_PREFIX`); `null` to see only whether the
    /// port opens.
    pub path: Option<String>,
    /// Seconds between two probes.
    #[schemars(range(min = 1))]
    pub period_seconds: u16,
    /// Seconds a probe may take.
    #[schemars(range(min = 1))]
    pub timeout_seconds: u16,
    /// Failures in a row before a ready lab counts as not ready.
    #[schemars(range(min = 1))]
    pub failure_threshold: u16,
}

impl Default for ReadinessProbe {
    /// Jupyter Server answers `api` with its version, without a login.
    fn default() -> Self {
        Self { path: Some("api".to_owned()), period_seconds: 1, timeout_seconds: 5, failure_threshold: 30 }
    }
}
