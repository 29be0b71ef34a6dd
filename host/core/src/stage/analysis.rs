//! What an analysis says.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Stage;

/// The stage of a lab, why, and what is remarkable about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// Where the pod is.
    pub stage: Stage,
    /// Why, in `CamelCase`, stable for programs.
    pub reason: String,
    /// Why, in a sentence that a lab's user understands.
    pub message: String,
    /// What the cluster said, repeats folded, oldest first.
    pub findings: Vec<Finding>,
    /// How often containers of the pod were restarted, init containers aside.
    pub restarts: u32,
    /// How the container ended that was restarted last, in a sentence; absent when none was.
    pub last_end: Option<String>,
    /// When the answer may change without the cluster saying anything new.
    pub recheck_at: Option<Timestamp>,
}

impl Analysis {
    /// Of a lab that has no pod.
    pub fn unknown() -> Self {
        Self {
            stage: Stage::Unknown,
            reason: "NoPod".to_owned(),
            message: "Your lab does not exist in the cluster.".to_owned(),
            findings: Vec::new(),
            restarts: 0,
            last_end: None,
            recheck_at: None,
        }
    }
}

/// Something the cluster said about the pod or its volumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What it means for the spawn.
    pub severity: Severity,
    /// Kubernetes' own reason.
    pub reason: String,
    /// The cluster's words, or ours where those help nobody.
    pub message: String,
    /// How often it was said; at least 1.
    pub count: u32,
    /// What it is about: `pod`, `container/notebook`, `PersistentVolumeClaim/claim-ada`.
    pub source: String,
}

/// What a finding means for a spawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing.
    Info,
    /// It may still succeed.
    Warning,
    /// It cannot succeed.
    Critical,
}
