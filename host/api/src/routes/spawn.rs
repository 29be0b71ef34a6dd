//! `/labs/{username}/spawn`

use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::LOCATION;
use wasmspawner_core::policy::spawn::SpawnRequest;
use wasmspawner_core::users::access::Access;

use crate::auth::{Authenticator, Caller};
use crate::fair_use::FairUse;
use crate::openapi::answers::StartRefused;
use crate::problem::Problem;
use crate::request::body::JsonBytes;
use crate::request::location;
use crate::request::path::LabPath;
use crate::request::prefix::Prefix;
use crate::wire::{self, ParsedSpawn};
use wasmspawner_spawner::{Labs, SpawnError};

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
    State(labs): State<Labs>,
    State(authenticator): State<Authenticator>,
    State(prefix): State<Prefix>,
    State(fair_use): State<FairUse>,
    caller: Caller,
    LabPath(key): LabPath,
    request: Request,
) -> Result<Response, Problem> {
    caller.may(Access::Spawn(&key))?;
    let JsonBytes(body) = JsonBytes::from_request(request, &()).await?;
    let parsed = wire::parse_spawn(&body)?;
    let (key, wanted) = parsed.lab(&key)?;
    let permit = caller.may(Access::Spawn(&key))?;
    let lab = location::of_lab(&prefix, &key);
    let in_the_way = |problem: SpawnError| Problem::from(problem).with_lab_at(lab.clone());
    // A request that fails here does not count against the limit, because it is cheap: a client may repeat it while the
    // cluster is unavailable.
    labs.can_spawn(&key.clone().into()).map_err(in_the_way)?;
    if let Some(user) = caller.limited() {
        fair_use.spawn(user)?;
    }
    let identity = authenticator.identity_of(&caller, &key.user).await?;
    let token = caller.token_for_lab(permit);
    let requested_by = caller.username.to_string();
    let ParsedSpawn { options, env, .. } = parsed;
    let request = SpawnRequest { key, identity, wanted, options, env, token, requested_by };
    labs.spawn(request).await.map_err(in_the_way)?;
    Ok((StatusCode::SEE_OTHER, [(LOCATION, lab)]).into_response())
}
