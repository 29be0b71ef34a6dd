//! The stages themselves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a lab's pod is in its life (seed 004).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Stage {
    /// Waiting for a node.
    Scheduling,
    /// An image is being downloaded, for longer than a moment.
    Pulling,
    /// Init containers run or wait to run.
    Initializing,
    /// The main containers start, or are not ready yet.
    Starting,
    /// Ready.
    Running,
    /// Being deleted.
    Terminating,
    /// Ended by itself, successfully.
    Stopped,
    /// Ended, or will never be ready.
    Failed,
    /// Nothing can be said.
    Unknown,
}

impl Stage {
    /// The stage's name, as it is written everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
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
