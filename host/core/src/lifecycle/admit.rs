//! May an operation begin? Decided on the state alone.

use super::{Lab, Phase};

/// What to do with an admitted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Begin a new operation.
    Begin,
    /// The same operation is under way already: wait for it.
    Join,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 409
    #[error("a lab is already running; stop it before starting another")]
    LabExists,
    /// 409
    #[error("a lab is already being started")]
    SpawnInProgress,
    /// 409
    #[error("the lab is being stopped; try again when that is done")]
    StopInProgress,
    /// 429
    #[error("too many labs are being started right now; try again shortly")]
    TooManySpawns,
    /// 409
    #[error("the lab still exists; stop it before its volumes are deleted")]
    VolumesInUse,
    /// 404
    #[error("no lab is running")]
    NoLab,
    /// 503
    #[error("the service is about to end; try again in a moment")]
    ShuttingDown,
}

/// May a spawn begin? `slot_free` says whether the service may start one more lab at this moment.
///
/// A failed lab does not stand in the way: its record and what it left are replaced (SQR-066). Neither does one that is
/// stopped but not quite gone: the spawn waits for that.
pub fn admit_spawn(lab: &Lab, slot_free: bool) -> Result<Admission, Refusal> {
    match lab.phase {
        Phase::Running(_) => Err(Refusal::LabExists),
        Phase::Starting(_) => Err(Refusal::SpawnInProgress),
        Phase::Stopping(_) => Err(Refusal::StopInProgress),
        Phase::Absent | Phase::Leaving(_) | Phase::Failed(_) if !slot_free => Err(Refusal::TooManySpawns),
        Phase::Absent | Phase::Leaving(_) | Phase::Failed(_) => Ok(Admission::Begin),
    }
}

/// May the volumes of a lab go? Not while anything of it may use them.
pub fn admit_release(lab: &Lab) -> Result<(), Refusal> {
    match lab.phase {
        Phase::Absent | Phase::Leaving(_) | Phase::Failed(_) if lab.observed.pod.is_missing() => Ok(()),
        _ => Err(Refusal::VolumesInUse),
    }
}

/// May a stop begin? Stopping a failed lab removes what is left of it, and the failure with it.
pub fn admit_stop(lab: &Lab) -> Result<Admission, Refusal> {
    match lab.phase {
        Phase::Starting(_) | Phase::Running(_) | Phase::Failed(_) => Ok(Admission::Begin),
        Phase::Stopping(_) => Ok(Admission::Join),
        Phase::Absent | Phase::Leaving(_) => Err(Refusal::NoLab),
    }
}
