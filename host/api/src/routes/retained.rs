//! `/retained`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::wire;
use wasmspawner_spawner::Leftovers;

/// What stays on purpose when labs end: namespaces that are not deleted, volume claims, and targets of environments.
///
/// Whoever takes an installation down deletes these by hand, if nobody needs them any more.
#[utoipa::path(
    get, path = "/retained", tag = "orphans", operation_id = "list_retained",
    responses((status = 200, description = "What stays, sorted by kind, namespace and name", body = Vec<wire::RetainedObject>))
)]
pub(crate) async fn list_retained(
    State(leftovers): State<Leftovers>,
    caller: Caller,
) -> Result<Json<Vec<wire::RetainedObject>>, Problem> {
    caller.may(Access::ManageOrphans)?;
    Ok(Json(leftovers.retained()?.into_iter().map(wire::RetainedObject::from).collect()))
}
