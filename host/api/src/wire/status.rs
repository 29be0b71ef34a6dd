//! The status of a lab, as the API names it.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::lifecycle;

/// The status of a lab. `failed`: its last operation failed.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LabStatus {
    Starting,
    Running,
    Terminating,
    Failed,
}

/// Whether the pod of a lab exists.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PodPresence {
    Present,
    Missing,
}

/// Which labs a list contains.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StatusFilter {
    Starting,
    Running,
    Terminating,
    Failed,
    All,
}

impl From<lifecycle::LabStatus> for LabStatus {
    fn from(status: lifecycle::LabStatus) -> Self {
        match status {
            lifecycle::LabStatus::Starting => Self::Starting,
            lifecycle::LabStatus::Running => Self::Running,
            lifecycle::LabStatus::Terminating => Self::Terminating,
            lifecycle::LabStatus::Failed => Self::Failed,
        }
    }
}

impl From<lifecycle::PodPresence> for PodPresence {
    fn from(pod: lifecycle::PodPresence) -> Self {
        match pod {
            lifecycle::PodPresence::Present => Self::Present,
            lifecycle::PodPresence::Missing => Self::Missing,
        }
    }
}

impl StatusFilter {
    /// Returns the filter of this name; `None` for an unknown name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "starting" => Some(Self::Starting),
            "running" => Some(Self::Running),
            "terminating" => Some(Self::Terminating),
            "failed" => Some(Self::Failed),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    /// True if the list contains labs of this status.
    pub(crate) fn includes(self, status: lifecycle::LabStatus) -> bool {
        match self {
            Self::Starting => status == lifecycle::LabStatus::Starting,
            Self::Running => status == lifecycle::LabStatus::Running,
            Self::Terminating => status == lifecycle::LabStatus::Terminating,
            Self::Failed => status == lifecycle::LabStatus::Failed,
            Self::All => true,
        }
    }
}
