//! `/orphans`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::access::Access;

use super::auth::Caller;
use super::problem::Problem;
use super::wire;
use crate::spawner::Labs;

/// Pods and namespaces that carry this service's labels and belong to no lab: somebody has interfered. The service leaves
/// them alone.
#[utoipa::path(
    get, path = "/orphans", tag = "orphans", operation_id = "list_orphans",
    responses((status = 200, description = "What belongs to no lab", body = Vec<wire::Orphan>))
)]
pub(super) async fn list_orphans(
    State(labs): State<Labs>,
    caller: Caller,
) -> Result<Json<Vec<wire::Orphan>>, Problem> {
    caller.may(Access::ManageOrphans)?;
    Ok(Json(labs.orphans().await?.into_iter().map(wire::Orphan::from).collect()))
}

/// Deletes them. Volume claims in a namespace go with it.
#[utoipa::path(
    delete, path = "/orphans", tag = "orphans", operation_id = "delete_orphans",
    responses(
        (status = 200, description = "What was asked to go", body = Vec<wire::Orphan>),
        (status = 503, description = "The cluster cannot do it now", body = super::problem::ErrorBody),
    )
)]
pub(super) async fn delete_orphans(
    State(labs): State<Labs>,
    caller: Caller,
) -> Result<Json<Vec<wire::Orphan>>, Problem> {
    caller.may(Access::ManageOrphans)?;
    Ok(Json(labs.delete_orphans().await?.into_iter().map(wire::Orphan::from).collect()))
}
