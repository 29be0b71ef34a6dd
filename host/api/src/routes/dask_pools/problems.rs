//! Refused requests about Dask pools, as HTTP answers.

use wasmspawner_core::lifecycle::Refusal;

use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use wasmspawner_spawner::SpawnError;

/// The position of the pool's name in the request.
const PATH: &[&str] = &["path", "pool"];

/// 404: there is no pool, or no record of one.
pub(super) fn unknown_pool() -> Problem {
    Problem::at(PATH, ProblemKind::UnknownPool, "the lab has no Dask pool of this name")
}

/// 412: there is a pool of this name, but not the one that the client means.
pub(super) fn another_pool() -> Problem {
    let msg = "the Dask pool of this name has another certificate than the one that is meant";
    Problem::at(&["header", "if-match"], ProblemKind::AnotherPool, msg)
}

/// Converts an error of a start, a stop or a change. Conflicts with the pool's state get messages about the pool; the
/// others are as for labs.
pub(super) fn of_spawn(error: SpawnError) -> Problem {
    let conflict = |kind, msg| Problem::at(PATH, kind, msg);
    match error {
        SpawnError::Refused(Refusal::LabExists | Refusal::SpawnInProgress) => conflict(
            ProblemKind::PoolExists,
            "there is a Dask pool of this name already; use it, stop it first, or choose another name",
        ),
        SpawnError::Refused(Refusal::StopInProgress) => conflict(
            ProblemKind::StopInProgress,
            "the Dask pool of this name is being stopped; try again when that is done",
        ),
        SpawnError::Refused(Refusal::NoLab) => unknown_pool(),
        other => other.into(),
    }
}
