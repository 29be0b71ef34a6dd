//! `/spawn-form/{username}`

use axum::extract::{FromRequest, Request, State};
use axum::response::Html;
use wasmspawner_core::policy::Options;
use wasmspawner_core::users::access::Access;

use crate::auth::{Authenticator, Caller};
use crate::problem::Problem;
use crate::request::body::JsonBytes;
use crate::request::path::LabPath;
use crate::wire;
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
    Ok(Html(choices.spawn_form(&identity, &key.server, Options::new()).await?))
}

/// The form for a server that was started before. It begins with the choices of the last start that are still available, and
/// says which are not. Nothing is stored.
#[utoipa::path(
    post, path = "/spawn-form/{username}", tag = "labs", operation_id = "get_spawn_form_again",
    request_body = wire::SpawnFormBody,
    responses(
        (status = 200, description = "The form", body = String, content_type = "text/html; charset=utf-8"),
        (status = 400, description = "The body is not JSON", body = crate::problem::ErrorBody),
        (status = 422, description = "An option is invalid", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn get_spawn_form_again(
    State(choices): State<Choices>,
    State(authenticator): State<Authenticator>,
    caller: Caller,
    LabPath(key): LabPath,
    request: Request,
) -> Result<Html<String>, Problem> {
    caller.may(Access::ReadForm(&key))?;
    let JsonBytes(body) = JsonBytes::from_request(request, &()).await?;
    let last_options = wire::parse_spawn_form(&body)?;
    let identity = authenticator.identity_of(&caller, &key.user).await?;
    Ok(Html(choices.spawn_form(&identity, &key.server, last_options).await?))
}
