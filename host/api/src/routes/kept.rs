//! `/kept`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::wire;
use wasmspawner_spawner::Labs;

/// What stays on purpose when labs end: namespaces that are not deleted, volume claims, and targets of environments.
///
/// Whoever takes an installation down deletes these by hand, if nobody needs them any more.
#[utoipa::path(
    get, path = "/kept", tag = "orphans", operation_id = "list_kept",
    responses((status = 200, description = "What stays, sorted by kind, namespace and name", body = Vec<wire::KeptObject>))
)]
pub(crate) async fn list_kept(
    State(labs): State<Labs>,
    caller: Caller,
) -> Result<Json<Vec<wire::KeptObject>>, Problem> {
    caller.may(Access::ManageOrphans)?;
    Ok(Json(labs.kept()?.into_iter().map(wire::KeptObject::from).collect()))
}
