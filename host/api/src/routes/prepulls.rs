//! `/prepulls`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::wire;
use wasmspawner_spawner::Choices;
use wasmspawner_spawner::prepull::LivePrepulls;

/// The images that nodes pull before somebody asks for them.
#[utoipa::path(
    get, path = "/prepulls", tag = "images", operation_id = "list_prepulls",
    responses((status = 200, description = "What nodes are to have, what they pull, and what they could not pull", body = wire::Prepulls))
)]
pub(crate) async fn list_prepulls(
    State(choices): State<Choices>,
    State(prepulls): State<LivePrepulls>,
    caller: Caller,
) -> Result<Json<wire::Prepulls>, Problem> {
    caller.may(Access::ReadImages)?;
    let (_, nodes) = choices.known_images();
    let report = prepulls.current();
    Ok(Json(report.map(|report| wire::Prepulls::new(&report, &nodes)).unwrap_or_default()))
}
