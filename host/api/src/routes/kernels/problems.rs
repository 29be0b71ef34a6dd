//! Refused requests about kernels, as HTTP answers.

use wasmspawner_core::lifecycle::Refusal;

use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use wasmspawner_spawner::{LauncherAway, SpawnError};

/// The position of the kernel's id in the request.
const PATH: &[&str] = &["path", "kernel"];

/// 404: there is no kernel, or no record of one.
pub(super) fn unknown_kernel() -> Problem {
    Problem::at(PATH, ProblemKind::UnknownKernel, "the lab has no kernel of this id")
}

/// Converts an error of a start or a stop. Conflicts with the kernel's state get messages about the kernel; the others
/// are as for labs.
pub(super) fn of_spawn(error: SpawnError) -> Problem {
    let conflict = |kind, msg| Problem::at(PATH, kind, msg);
    match error {
        SpawnError::Refused(Refusal::LabExists | Refusal::SpawnInProgress) => conflict(
            ProblemKind::KernelExists,
            "there is a kernel of this id already; end it first, or choose another id",
        ),
        SpawnError::Refused(Refusal::StopInProgress) => conflict(
            ProblemKind::StopInProgress,
            "the kernel of this id is being ended; try again when that is done",
        ),
        SpawnError::Refused(Refusal::NoLab) => unknown_kernel(),
        other => other.into(),
    }
}

impl From<LauncherAway> for Problem {
    fn from(error: LauncherAway) -> Self {
        let kind = match error {
            LauncherAway::NotConnected => ProblemKind::NoLauncher,
            LauncherAway::NotRunning => ProblemKind::NotRunning,
            LauncherAway::Busy => ProblemKind::Busy,
        };
        Self::at(PATH, kind, error.to_string())
    }
}
