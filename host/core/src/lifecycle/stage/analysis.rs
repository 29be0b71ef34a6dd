//! The result of analysing a lab's pod.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Stage;

/// The stage of a lab, the reason, and the findings of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// The stage of the pod.
    pub stage: Stage,
    /// The reason in `CamelCase`. It does not change between versions.
    pub reason: String,
    /// The reason, in a sentence for the lab's user.
    pub message: String,
    /// The cluster's findings with repeats combined, oldest first.
    pub findings: Vec<Finding>,
    /// Number of restarts of the pod's containers, without init containers.
    pub restarts: u32,
    /// The end of the container that was restarted last, in a sentence; absent if none was restarted.
    pub last_end: Option<String>,
    /// The exit code of the main container that ended with an error last; absent if none did.
    pub exit_code: Option<i32>,
    /// The time at which the analysis has to be repeated even if nothing new is observed.
    pub recheck_at: Option<Timestamp>,
}

impl Analysis {
    /// Returns the analysis of a lab without a pod.
    pub fn unknown() -> Self {
        Self {
            stage: Stage::Unknown,
            reason: "NoPod".to_owned(),
            message: "Your lab does not exist in the cluster.".to_owned(),
            findings: Vec::new(),
            restarts: 0,
            last_end: None,
            exit_code: None,
            recheck_at: None,
        }
    }
}

/// A problem or message of the cluster about the pod or its volumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Its importance for the spawn.
    pub severity: Severity,
    /// The reason that Kubernetes gives.
    pub reason: String,
    /// The cluster's message, or a clearer one of the service.
    pub message: String,
    /// How often it occurred; at least 1.
    pub count: u32,
    /// Its object: `pod`, `container/notebook`, `PersistentVolumeClaim/claim-ada`.
    pub source: String,
}

/// The importance of a finding for a spawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// No problem.
    Info,
    /// The spawn may still succeed.
    Warning,
    /// The spawn cannot succeed.
    Critical,
}
