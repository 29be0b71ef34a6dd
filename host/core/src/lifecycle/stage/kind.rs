//! The stages of a lab.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The stage of a lab's pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Stage {
    /// Waiting for an environment: there is no pod yet.
    Binding,
    /// Waiting for a node.
    Scheduling,
    /// An image is being downloaded, and not just for a moment.
    Pulling,
    /// Init containers run or wait to run.
    Initializing,
    /// The main containers are starting, or are not ready yet.
    Starting,
    /// The pod is ready.
    Running,
    /// The pod is being deleted.
    Terminating,
    /// The pod ended by itself, successfully, or it is gone after a stop.
    Stopped,
    /// The pod failed, or cannot become ready.
    Failed,
    /// There is no pod, or its stage cannot be determined.
    Unknown,
}

impl Stage {
    /// Returns the stage's name, as it is written in the API and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Binding => "Binding",
            Self::Scheduling => "Scheduling",
            Self::Pulling => "Pulling",
            Self::Initializing => "Initializing",
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Terminating => "Terminating",
            Self::Stopped => "Stopped",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}
