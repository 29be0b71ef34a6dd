//! The spawner's errors as HTTP answers.

use wasmspawner_core::lifecycle::Refusal;
use wasmspawner_core::policy::FieldError;

use crate::problem::kind::ProblemKind;
use crate::problem::{Detail, Problem};
use wasmspawner_spawner::SpawnError;

/// The number of seconds after which a refused spawn may be tried again.
const SPAWN_PAUSE: u64 = 5;

impl From<SpawnError> for Problem {
    fn from(error: SpawnError) -> Self {
        let msg = error.to_string();
        match error {
            SpawnError::Refused(refusal) => refusal.into(),
            SpawnError::Denied { by, .. } => Self::new(ProblemKind::PermissionDenied, msg).decided_by(*by),
            SpawnError::InvalidPool { field, .. } => {
                Self::at(&["body", field], ProblemKind::InvalidPool, msg)
            }
            SpawnError::Invalid(errors) => invalid(&errors),
            SpawnError::NotOffered(_) => Self::at(&["body", "user_string"], ProblemKind::NotOffered, msg),
            SpawnError::Workload { .. } => {
                Self::at(&["body", "user_string"], ProblemKind::WorkloadRefused, msg)
            }
            SpawnError::Name(_) => Self::at(&["path", "username"], ProblemKind::InvalidName, msg),
            SpawnError::RetryLater(seconds) => {
                Self::new(ProblemKind::RetryLater, msg).retry_after(seconds.into())
            }
            SpawnError::PolicyFailed { reason, .. } => {
                Self::new(ProblemKind::PolicyFailed, format!("{msg}: {reason}"))
            }
            SpawnError::PolicyUnavailable { .. } => {
                Self::new(ProblemKind::PolicyUnavailable, msg).retry_after(SPAWN_PAUSE)
            }
            SpawnError::Cluster(_)
            | SpawnError::ClusterAway
            | SpawnError::NoTime
            | SpawnError::RecordIncomplete => {
                Self::new(ProblemKind::ClusterUnavailable, msg).retry_after(SPAWN_PAUSE)
            }
            SpawnError::RecordTaken | SpawnError::RecordGone => {
                Self::at(&["path", "username"], ProblemKind::RecordTaken, msg)
            }
            SpawnError::UnreadableRecord { .. } => Self::new(ProblemKind::UnreadableRecord, msg),
            SpawnError::UnreadableRecords(_) => Self::new(ProblemKind::UnreadableRecords, msg),
            SpawnError::NoLab => Self::unknown_lab(msg),
            SpawnError::LabNotRunning => Self::at(&["path", "username"], ProblemKind::LabNotRunning, msg),
            SpawnError::NoChildren | SpawnError::NoChildrenInWorkloads => {
                Self::new(ProblemKind::KernelsUnavailable, msg)
            }
            SpawnError::NotReady => Self::not_ready(),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let msg = refusal.to_string();
        let path = &["path", "username"];
        match refusal {
            Refusal::LabExists => Self::at(path, ProblemKind::LabExists, msg),
            Refusal::SpawnInProgress => Self::at(path, ProblemKind::SpawnInProgress, msg),
            Refusal::StopInProgress => Self::at(path, ProblemKind::StopInProgress, msg),
            Refusal::TooManySpawns => Self::new(ProblemKind::TooManySpawns, msg).retry_after(SPAWN_PAUSE),
            Refusal::VolumesInUse => Self::at(path, ProblemKind::VolumesInUse, msg),
            Refusal::ShuttingDown => Self::new(ProblemKind::ShuttingDown, msg).retry_after(1),
            Refusal::NoLab => Self::unknown_lab(msg),
        }
    }
}

impl Problem {
    /// 503: this process does not know the labs. A 404 would mean that there is no lab.
    pub(crate) fn not_ready() -> Self {
        let msg = SpawnError::NotReady.to_string();
        Self::new(ProblemKind::NotReady, msg).retry_after(1)
    }
}

fn invalid(errors: &[FieldError]) -> Problem {
    let details = errors.iter().map(|error| {
        let loc = ["body", "options"].into_iter().map(str::to_owned).chain(path(&error.field));
        Detail::new(loc, ProblemKind::InvalidOption, error.message.clone())
    });
    Problem::from_details(details.collect())
}

/// Splits a field's name into its parts: `volumes[3].name` becomes `volumes`, `3`, `name`.
fn path(field: &str) -> impl Iterator<Item = String> {
    field.split(['.', '[', ']']).filter(|step| !step.is_empty()).map(str::to_owned)
}
