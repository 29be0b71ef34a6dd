//! `/orphans`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::wire;
use wasmspawner_spawner::Leftovers;

/// Pods, namespaces and environments that carry this service's labels but belong to no lab.
///
/// They appear when somebody deletes or changes records, targets or objects by hand. The service never changes them by itself.
#[utoipa::path(
    get, path = "/orphans", tag = "orphans", operation_id = "list_orphans",
    responses((status = 200, description = "What belongs to no lab", body = Vec<wire::Orphan>))
)]
pub(crate) async fn list_orphans(
    State(leftovers): State<Leftovers>,
    caller: Caller,
) -> Result<Json<Vec<wire::Orphan>>, Problem> {
    caller.may(Access::ManageOrphans)?;
    Ok(Json(leftovers.orphans().await?.into_iter().map(wire::Orphan::from).collect()))
}

/// Deletes the orphans in the service's own cluster.
///
/// Deleting a namespace deletes the volume claims in it.
#[utoipa::path(
    delete, path = "/orphans", tag = "orphans", operation_id = "delete_orphans",
    responses(
        (status = 200, description = "The orphans whose deletion was requested", body = Vec<wire::Orphan>),
        (status = 409, description = "The record of some lab cannot be read, so nothing is deleted", body = crate::problem::ErrorBody),
        (status = 503, description = "The cluster cannot do it now", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn delete_orphans(
    State(leftovers): State<Leftovers>,
    caller: Caller,
) -> Result<Json<Vec<wire::Orphan>>, Problem> {
    caller.may(Access::ManageOrphans)?;
    Ok(Json(leftovers.delete_orphans().await?.into_iter().map(wire::Orphan::from).collect()))
}
