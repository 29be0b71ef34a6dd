//! `/labs/{username}/volumes`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::request::path::LabPath;
use crate::wire;
use wasmspawner_spawner::Labs;

/// The volume claims that a server keeps while it has no lab.
///
/// The list is empty where volumes are deleted with the lab.
#[utoipa::path(
    get, path = "/labs/{username}/volumes", tag = "labs", operation_id = "get_volumes",
    responses(
        (status = 200, description = "The volumes that the server has used", body = wire::Volumes),
    )
)]
pub(crate) async fn get_volumes(
    State(labs): State<Labs>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<Json<wire::Volumes>, Problem> {
    caller.may(Access::ReadOrStop(&key))?;
    Ok(Json(wire::Volumes::new(&key, labs.volumes(&key).as_ref())))
}

/// Deletes the volume claims of a server that JupyterHub deletes.
///
/// Only claims that a policy wants deleted and that no other server uses are deleted. JupyterHub calls this when a
/// named server or its user is deleted.
#[utoipa::path(
    delete, path = "/labs/{username}/volumes", tag = "labs", operation_id = "release_volumes",
    responses(
        (status = 200, description = "What is deleted, and what is kept", body = wire::ReleasedVolumes),
        (status = 409, description = "The lab still exists", body = crate::problem::ErrorBody),
        (status = 503, description = "The cluster cannot do it now", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn release_volumes(
    State(labs): State<Labs>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<Json<wire::ReleasedVolumes>, Problem> {
    caller.may(Access::ReleaseVolumes)?;
    Ok(Json(labs.release_volumes(&key).await?.into()))
}
