//! `/labs/{username}/history`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::request::path::LabPath;
use crate::wire;
use wasmspawner_spawner::Labs;

/// The recent operations on a lab, newest first.
#[utoipa::path(
    get, path = "/labs/{username}/history", tag = "labs", operation_id = "get_history",
    responses(
        (status = 200, description = "Operations, newest first", body = Vec<wire::Operation>),
        (status = 404, description = "Nothing is known about such a lab", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn get_history(
    State(labs): State<Labs>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<Json<Vec<wire::Operation>>, Problem> {
    let permit = caller.may(Access::ReadOrStop(&key))?;
    let records = labs
        .history(&key.into())
        .ok_or_else(|| Problem::unknown_lab("no operation on this lab is remembered"))?;
    Ok(Json(records.iter().map(|record| wire::Operation::from_record(record, permit)).collect()))
}
