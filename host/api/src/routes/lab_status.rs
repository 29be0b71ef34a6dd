//! `/lab-status`

use axum::Json;
use axum::extract::{RawQuery, State};
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::wire;
use wasmspawner_spawner::Labs;

/// The status of all labs in short: one request for all spawners of a Hub.
///
/// With `since`, the revision of an earlier answer, only the labs that have changed after it. The answer still holds
/// all labs, and `complete` is true, when that revision is too old or from before a restart of the service.
#[utoipa::path(
    get, path = "/lab-status", tag = "labs", operation_id = "get_lab_status",
    params(("since" = Option<String>, Query, description = "The revision of an earlier answer")),
    responses((status = 200, description = "All labs, or those that changed", body = wire::LabStatusReport))
)]
pub(crate) async fn get_lab_status(
    State(labs): State<Labs>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Json<wire::LabStatusReport>, Problem> {
    caller.may(Access::ListLabs)?;
    let query = query.unwrap_or_default();
    let since = query.split('&').find_map(|pair| pair.strip_prefix("since="));
    Ok(Json(labs.changes(since)?.into()))
}
