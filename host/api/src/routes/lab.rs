//! `/labs/{username}`

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::users::access::{Access, Permit};

use crate::auth::{Authenticator, Caller};
use crate::problem::Problem;
use crate::request::path::LabPath;
use crate::wire;
use wasmspawner_spawner::{LabSnapshot, Labs};

/// One lab, also one that has failed.
#[utoipa::path(
    get, path = "/labs/{username}", tag = "labs", operation_id = "get_lab",
    responses(
        (status = 200, description = "The lab", body = wire::Lab),
        (status = 404, description = "No such lab", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn get_lab(
    State(labs): State<Labs>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<Json<wire::Lab>, Problem> {
    let permit = caller.may(Access::ReadOrStop(&key))?;
    Ok(Json(wire::Lab::from_snapshot(&*find(&labs, key)?, permit)))
}

/// Returns the lab, also one that has failed.
pub(crate) fn find(labs: &Labs, key: LabKey) -> Result<Arc<LabSnapshot>, Problem> {
    let key = key.into();
    labs.require_readable(&key)?;
    labs.lab(&key).ok_or_else(|| Problem::unknown_lab("no lab is running or starting"))
}

/// Stops a lab.
///
/// The lab's events report the progress of the stop.
#[utoipa::path(
    delete, path = "/labs/{username}", tag = "labs", operation_id = "stop_lab",
    responses(
        (status = 202, description = "The lab is being stopped"),
        (status = 403, description = "A policy does not allow it", body = crate::problem::ErrorBody),
        (status = 404, description = "No lab to stop", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn stop_lab(
    State(labs): State<Labs>,
    State(authenticator): State<Authenticator>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<StatusCode, Problem> {
    stop(&labs, &authenticator, &caller, &key).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Begins to stop the lab, if the caller may.
pub(crate) async fn stop(
    labs: &Labs,
    authenticator: &Authenticator,
    caller: &Caller,
    key: &LabKey,
) -> Result<(), Problem> {
    let owner = match caller.may(Access::ReadOrStop(key))? {
        Permit::Owner => Some(authenticator.identity_of(caller, &key.user).await?),
        Permit::Administrator => None,
    };
    Ok(labs.stop(&key.clone().into(), owner.as_ref(), caller.username.as_str()).await?)
}
