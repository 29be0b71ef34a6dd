//! `/jobs/{job_id}`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::request::path::JobPath;
use crate::wire;
use wasmspawner_spawner::Labs;

/// One operation, under way or over, by its id.
///
/// Where the history is in NATS, processes that stand by answer, too.
#[utoipa::path(
    get, path = "/jobs/{job_id}", tag = "labs", operation_id = "get_job",
    responses(
        (status = 200, description = "The operation", body = wire::Job),
        (status = 404, description = "No such operation is remembered, or it is of a lab that the caller may not see", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn get_job(
    State(labs): State<Labs>,
    caller: Caller,
    JobPath(job_id): JobPath,
) -> Result<Json<wire::Job>, Problem> {
    let record = labs.job(job_id).ok_or_else(Problem::unknown_job)?;
    // Nobody learns which operations others have.
    let permit = caller.may(Access::ReadOrStop(&record.key.lab)).map_err(|_| Problem::unknown_job())?;
    Ok(Json(wire::Job::from_record(&record, permit)))
}
