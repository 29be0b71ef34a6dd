//! `/environments`

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use crate::request::path::TargetPath;
use crate::wire;
use wasmspawner_spawner::{EnvironmentsError, SiteEnvironments, TargetRefusal};

/// All environments, claims and targets.
///
/// Labs have claims of their own, which have the names of their records.
#[utoipa::path(
    get, path = "/environments", tag = "environments", operation_id = "list_environments",
    responses(
        (status = 200, description = "All environments, claims and targets", body = wire::Environments),
        (status = 404, description = "The site has no environments", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn list_environments(
    State(environments): State<SiteEnvironments>,
    caller: Caller,
) -> Result<Json<wire::Environments>, Problem> {
    caller.may(Access::ManageEnvironments)?;
    Ok(Json(environments.overview()?.into()))
}

/// Frees a target that was released.
///
/// It was kept for its last owner. From now on any claim of its class may get it, with everything that is in its
/// namespace.
#[utoipa::path(
    post, path = "/environments/targets/{target}/release", tag = "environments", operation_id = "release_target",
    responses(
        (status = 204, description = "The target is free"),
        (status = 404, description = "There is no such target", body = crate::problem::ErrorBody),
        (status = 409, description = "The target was not released", body = crate::problem::ErrorBody),
        (status = 422, description = "This is not the name of a target", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn release_target(
    State(environments): State<SiteEnvironments>,
    caller: Caller,
    TargetPath(target): TargetPath,
) -> Result<StatusCode, Problem> {
    caller.may(Access::ManageEnvironments)?;
    environments.release(target.as_str()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a target that no claim has.
///
/// If its namespace was made for it, that is deleted with everything in it, volume claims included.
#[utoipa::path(
    delete, path = "/environments/targets/{target}", tag = "environments", operation_id = "retire_target",
    responses(
        (status = 202, description = "The target is being removed"),
        (status = 404, description = "There is no such target", body = crate::problem::ErrorBody),
        (status = 409, description = "A claim has the target", body = crate::problem::ErrorBody),
        (status = 422, description = "This is not the name of a target", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn retire_target(
    State(environments): State<SiteEnvironments>,
    caller: Caller,
    TargetPath(target): TargetPath,
) -> Result<StatusCode, Problem> {
    caller.may(Access::ManageEnvironments)?;
    environments.retire(target.as_str()).await?;
    Ok(StatusCode::ACCEPTED)
}

impl From<EnvironmentsError> for Problem {
    fn from(error: EnvironmentsError) -> Self {
        let kind = match error {
            EnvironmentsError::Spawner(error) => return error.into(),
            EnvironmentsError::None => ProblemKind::NoEnvironments,
            EnvironmentsError::Target(TargetRefusal::Unknown(_)) => ProblemKind::UnknownTarget,
            EnvironmentsError::Target(TargetRefusal::NotReleased(_)) => ProblemKind::TargetNotReleased,
            EnvironmentsError::Target(TargetRefusal::InUse { .. }) => ProblemKind::TargetInUse,
            EnvironmentsError::Target(TargetRefusal::Changed(_)) => ProblemKind::TargetChanged,
        };
        Self::new(kind, error.to_string())
    }
}
