//! The stages of a lab's pod, as the API names them.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::lifecycle::{progress, stage};

/// The stage of a lab's pod.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) enum Stage {
    Binding,
    Scheduling,
    Pulling,
    Initializing,
    Starting,
    Running,
    Terminating,
    Stopped,
    Failed,
    Unknown,
}

/// A stage that the lab has entered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StageReport {
    /// The stage that was entered.
    stage: Stage,
    /// The reason for the stage, for programs, in `CamelCase`.
    reason: String,
    /// The reason for the stage, for people.
    message: String,
    /// How far the operation is, 0 to 100.
    #[schema(maximum = 100)]
    progress: u8,
    /// When the stage was entered, RFC 3339.
    #[schema(format = DateTime)]
    at: String,
}

impl From<stage::Stage> for Stage {
    fn from(stage: stage::Stage) -> Self {
        match stage {
            stage::Stage::Binding => Self::Binding,
            stage::Stage::Scheduling => Self::Scheduling,
            stage::Stage::Pulling => Self::Pulling,
            stage::Stage::Initializing => Self::Initializing,
            stage::Stage::Starting => Self::Starting,
            stage::Stage::Running => Self::Running,
            stage::Stage::Terminating => Self::Terminating,
            stage::Stage::Stopped => Self::Stopped,
            stage::Stage::Failed => Self::Failed,
            stage::Stage::Unknown => Self::Unknown,
        }
    }
}

impl From<&progress::StageReport> for StageReport {
    fn from(report: &progress::StageReport) -> Self {
        Self {
            stage: report.stage.into(),
            reason: report.reason.clone(),
            message: report.message.clone(),
            progress: report.progress,
            at: report.at.to_string(),
        }
    }
}
