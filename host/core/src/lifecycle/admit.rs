//! Decides from a lab's state alone whether an operation may begin.

use super::{Lab, Phase};

/// The treatment of an admitted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Begin a new operation.
    Begin,
    /// Join the operation of the same kind that is already under way.
    Join,
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// HTTP status 409.
    #[error("a lab is already running; stop it before starting another")]
    LabExists,
    /// HTTP status 409.
    #[error("a lab is already being started")]
    SpawnInProgress,
    /// HTTP status 409.
    #[error("the lab is being stopped; try again when that is done")]
    StopInProgress,
    /// HTTP status 429.
    #[error("too many labs are being started right now; try again shortly")]
    TooManySpawns,
    /// HTTP status 409.
    #[error("the lab still exists; stop it before its volumes are deleted")]
    VolumesInUse,
    /// HTTP status 404.
    #[error("no lab is running")]
    NoLab,
    /// HTTP status 503.
    #[error("the service is about to end; try again in a moment")]
    ShuttingDown,
}

/// Decides whether a spawn may begin. `record_deleted` is true while the lab's record is being deleted: until it is
/// gone, no new one can be written. `slot_free` is true when the service may start one more lab at this moment.
///
/// A failed lab does not prevent a spawn: its record and its remaining objects are replaced (SQR-066). A stopped lab
/// whose objects are still being deleted does not prevent it either: the spawn waits until they are gone.
pub fn admit_spawn(lab: &Lab, record_deleted: bool, slot_free: bool) -> Result<Admission, Refusal> {
    match lab.phase {
        Phase::Running(_) => Err(Refusal::LabExists),
        Phase::Starting(_) => Err(Refusal::SpawnInProgress),
        Phase::Stopping(_) => Err(Refusal::StopInProgress),
        Phase::Absent | Phase::NamespaceKept(_) | Phase::CleaningUp(_) | Phase::Failed(_)
            if record_deleted =>
        {
            Err(Refusal::StopInProgress)
        }
        Phase::Absent | Phase::NamespaceKept(_) | Phase::CleaningUp(_) | Phase::Failed(_) if !slot_free => {
            Err(Refusal::TooManySpawns)
        }
        Phase::Absent | Phase::NamespaceKept(_) | Phase::CleaningUp(_) | Phase::Failed(_) => {
            Ok(Admission::Begin)
        }
    }
}

/// Decides whether the volumes of a lab may be deleted. They may not be deleted while any object of the lab may use
/// them.
pub fn admit_release(lab: &Lab) -> Result<(), Refusal> {
    match lab.phase {
        Phase::Absent | Phase::NamespaceKept(_) | Phase::CleaningUp(_) | Phase::Failed(_)
            if lab.observed.pod.is_missing() && lab.observed.children.is_missing() =>
        {
            Ok(())
        }
        _ => Err(Refusal::VolumesInUse),
    }
}

/// Decides whether a stop may begin. Stopping a failed lab deletes its remaining objects and its failure.
pub fn admit_stop(lab: &Lab) -> Result<Admission, Refusal> {
    match lab.phase {
        Phase::Starting(_) | Phase::Running(_) | Phase::Failed(_) => Ok(Admission::Begin),
        Phase::Stopping(_) => Ok(Admission::Join),
        Phase::Absent | Phase::NamespaceKept(_) | Phase::CleaningUp(_) => Err(Refusal::NoLab),
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::super::{
        Deletion, Failed, Failure, KeptNamespace, OperationKind, Restarts, Running, SpawnStep, Starting,
        TimeLimits,
    };
    use super::*;

    fn lab(phase: Phase) -> Lab {
        let limits =
            TimeLimits { spawn: SignedDuration::from_secs(600), delete: SignedDuration::from_secs(60) };
        Lab { phase, ..Lab::absent(limits) }
    }

    /// Columns: the phase; the answer to a spawn; that answer while the record is being deleted; the answer to a spawn
    /// when too many labs are starting; the answer to a stop; the answer to a release of the volumes.
    #[test]
    fn each_phase_admits_what_it_should() {
        use Admission::{Begin, Join};
        use Refusal::{LabExists, NoLab, SpawnInProgress, StopInProgress, TooManySpawns, VolumesInUse};
        let at = Timestamp::UNIX_EPOCH;
        let deletion = Deletion { deadline: at, overdue: false };
        let kept = KeptNamespace { until: at };
        let failed = Failed { failure: Failure::service("Why", "why"), at, operation: OperationKind::Spawn };
        let running = Running { ready_at: at, pod_uid: None, restarts: Restarts::recorded(3, None) };
        assert_eq!(running.restarts(), 3);
        let starting = Starting { step: SpawnStep::Waiting, overdue: false };
        for (phase, spawn, record_deleted, no_slot, stop, release) in [
            (Phase::Absent, Ok(Begin), Err(StopInProgress), Err(TooManySpawns), Err(NoLab), Ok(())),
            (
                Phase::NamespaceKept(kept),
                Ok(Begin),
                Err(StopInProgress),
                Err(TooManySpawns),
                Err(NoLab),
                Ok(()),
            ),
            (
                Phase::CleaningUp(deletion),
                Ok(Begin),
                Err(StopInProgress),
                Err(TooManySpawns),
                Err(NoLab),
                Ok(()),
            ),
            (Phase::Failed(failed), Ok(Begin), Err(StopInProgress), Err(TooManySpawns), Ok(Begin), Ok(())),
            (
                Phase::Starting(starting),
                Err(SpawnInProgress),
                Err(SpawnInProgress),
                Err(SpawnInProgress),
                Ok(Begin),
                Err(VolumesInUse),
            ),
            (
                Phase::Running(running),
                Err(LabExists),
                Err(LabExists),
                Err(LabExists),
                Ok(Begin),
                Err(VolumesInUse),
            ),
            (
                Phase::Stopping(deletion),
                Err(StopInProgress),
                Err(StopInProgress),
                Err(StopInProgress),
                Ok(Join),
                Err(VolumesInUse),
            ),
        ] {
            let lab = lab(phase);
            assert_eq!(admit_spawn(&lab, false, true), spawn, "{:?}", lab.phase);
            assert_eq!(admit_spawn(&lab, true, true), record_deleted, "{:?}", lab.phase);
            assert_eq!(admit_spawn(&lab, false, false), no_slot, "{:?}", lab.phase);
            assert_eq!(admit_stop(&lab), stop, "{:?}", lab.phase);
            assert_eq!(admit_release(&lab), release, "{:?}", lab.phase);
        }
    }
}
