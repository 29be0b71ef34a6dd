//! `/labs/{username}/spawn`

use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::LOCATION;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::policy::spawn::SpawnRequest;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::openapi::answers::StartRefused;
use crate::problem::Problem;
use crate::request::body::JsonBytes;
use crate::request::location;
use crate::request::path::LabPath;
use crate::state::Api;
use crate::wire::{self, ParsedSpawn};
use wasmspawner_spawner::SpawnError;

/// Starts a lab.
///
/// The answer comes as soon as the site's policies have agreed; the lab's events report the further progress.
#[utoipa::path(
    post, path = "/labs/{username}/spawn", tag = "labs", operation_id = "spawn_lab",
    request_body = wire::SpawnBody,
    responses(
        (status = 303, description = "The lab is being started", headers(("location" = String, description = "The lab"))),
        StartRefused,
        (status = 409, description = "There is a lab, or an operation on it is under way", body = crate::problem::ErrorBody,
            headers(("location" = String, description = "The lab"))),
        (status = 422, description = "An option or an environment variable is invalid", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn spawn_lab(
    State(api): State<Api>,
    caller: Caller,
    LabPath(key): LabPath,
    request: Request,
) -> Result<Response, Problem> {
    caller.may(Access::Spawn(&key))?;
    let JsonBytes(body) = JsonBytes::from_request(request, &()).await?;
    let lab = start(&api, &caller, &key, wire::parse_spawn(&body)?).await?;
    Ok((StatusCode::SEE_OTHER, [(LOCATION, location::of_lab(&api.prefix, &lab))]).into_response())
}

/// Starts the lab of a parsed request, and returns it. `path` is the lab that the path of the request names.
pub(crate) async fn start(
    api: &Api,
    caller: &Caller,
    path: &LabKey,
    parsed: ParsedSpawn,
) -> Result<LabKey, Problem> {
    let Api { labs, authenticator, fair_use, prefix, .. } = api;
    let (key, wanted) = parsed.lab(path)?;
    let permit = caller.may(Access::Spawn(&key))?;
    let in_the_way = |problem: SpawnError| Problem::from(problem).with_lab_at(location::of_lab(prefix, &key));
    // A request that fails here does not count against the limit, because it is cheap: a client may repeat it while the
    // cluster is unavailable.
    labs.can_spawn(&key.clone().into()).map_err(in_the_way)?;
    if let Some(user) = caller.limited() {
        fair_use.spawn(user)?;
    }
    let identity = authenticator.identity_of(caller, &key.user).await?;
    let token = caller.token_for_lab(permit);
    let requested_by = caller.username.to_string();
    let ParsedSpawn { options, env, .. } = parsed;
    let request = SpawnRequest { key: key.clone(), identity, wanted, options, env, token, requested_by };
    labs.spawn(request).await.map_err(in_the_way)?;
    Ok(key)
}
