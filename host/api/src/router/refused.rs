//! The spawner's errors as HTTP answers.

use http::StatusCode;
use wasmspawner_core::lifecycle::Refusal;
use wasmspawner_core::policy::FieldError;

use crate::problem::{Detail, Problem};
use wasmspawner_spawner::SpawnError;

/// The number of seconds after which a refused spawn may be tried again.
const SPAWN_PAUSE: u64 = 5;

impl From<SpawnError> for Problem {
    fn from(error: SpawnError) -> Self {
        let msg = error.to_string();
        match error {
            SpawnError::Refused(refusal) => refusal.into(),
            SpawnError::Denied { by, .. } => {
                Self::new(StatusCode::FORBIDDEN, "permission_denied", msg).decided_by(*by)
            }
            SpawnError::InvalidPool { field, .. } => {
                Self::at(StatusCode::UNPROCESSABLE_ENTITY, &["body", field], "invalid_pool", msg)
            }
            SpawnError::Invalid(errors) => invalid(&errors),
            SpawnError::NotOffered(_) => {
                Self::at(StatusCode::UNPROCESSABLE_ENTITY, &["body", "user_string"], "not_offered", msg)
            }
            SpawnError::Workload { .. } => {
                Self::at(StatusCode::CONFLICT, &["body", "user_string"], "workload_refused", msg)
            }
            SpawnError::Name(_) => {
                Self::at(StatusCode::UNPROCESSABLE_ENTITY, &["path", "username"], "invalid_name", msg)
            }
            SpawnError::RetryLater(seconds) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "retry_later", msg).retry_after(seconds.into())
            }
            SpawnError::PolicyFailed { reason, .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "policy_failed", format!("{msg}: {reason}"))
            }
            SpawnError::PolicyUnavailable { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "policy_unavailable", msg).retry_after(SPAWN_PAUSE)
            }
            SpawnError::Cluster(_) | SpawnError::ClusterAway | SpawnError::NoTime => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "cluster_unavailable", msg)
                    .retry_after(SPAWN_PAUSE)
            }
            SpawnError::RecordTaken | SpawnError::RecordGone => {
                Self::at(StatusCode::CONFLICT, &["path", "username"], "record_taken", msg)
            }
            SpawnError::NoLab => Self::unknown_lab(msg),
            SpawnError::LabNotRunning => {
                Self::at(StatusCode::CONFLICT, &["path", "username"], "lab_not_running", msg)
            }
            SpawnError::NoChildren | SpawnError::NoChildrenInWorkloads => {
                Self::new(StatusCode::CONFLICT, "kernels_unavailable", msg)
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
            Refusal::LabExists => Self::at(StatusCode::CONFLICT, path, "lab_exists", msg),
            Refusal::SpawnInProgress => Self::at(StatusCode::CONFLICT, path, "spawn_in_progress", msg),
            Refusal::StopInProgress => Self::at(StatusCode::CONFLICT, path, "stop_in_progress", msg),
            Refusal::TooManySpawns => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_spawns", msg).retry_after(SPAWN_PAUSE)
            }
            Refusal::VolumesInUse => Self::at(StatusCode::CONFLICT, path, "volumes_in_use", msg),
            Refusal::ShuttingDown => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", msg).retry_after(1)
            }
            Refusal::NoLab => Self::unknown_lab(msg),
        }
    }
}

impl Problem {
    /// 503: the service does not know its labs yet. A 404 would mean that there is no lab.
    pub(crate) fn not_ready() -> Self {
        let msg = "the service has just started and does not know its labs yet; try again in a moment";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", msg).retry_after(1)
    }
}

fn invalid(errors: &[FieldError]) -> Problem {
    let details = errors.iter().map(|error| {
        let loc = ["body", "options"].into_iter().map(str::to_owned).chain(path(&error.field));
        Detail::new(loc, "invalid_option", error.message.clone())
    });
    Problem::from_details(StatusCode::UNPROCESSABLE_ENTITY, details.collect())
}

/// Splits a field's name into its parts: `volumes[3].name` becomes `volumes`, `3`, `name`.
fn path(field: &str) -> impl Iterator<Item = String> {
    field.split(['.', '[', ']']).filter(|step| !step.is_empty()).map(str::to_owned)
}
