//! `/spawn-form/{username}`

use axum::extract::State;
use axum::response::Html;
use wasmspawner_core::users::access::Access;

use crate::auth::{Authenticator, Caller};
use crate::problem::Problem;
use crate::request::path::LabPath;
use wasmspawner_spawner::Choices;

/// The form with which a user chooses a lab: a fragment of HTML for the inside of a `<form>`.
#[utoipa::path(
    get, path = "/spawn-form/{username}", tag = "labs", operation_id = "get_spawn_form",
    responses(
        (status = 200, description = "The form", body = String, content_type = "text/html; charset=utf-8"),
    )
)]
pub(crate) async fn get_spawn_form(
    State(choices): State<Choices>,
    State(authenticator): State<Authenticator>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<Html<String>, Problem> {
    caller.may(Access::ReadForm(&key))?;
    let identity = authenticator.identity_of(&caller, &key.user).await?;
    Ok(Html(choices.spawn_form(&identity, &key.server).await?))
}
