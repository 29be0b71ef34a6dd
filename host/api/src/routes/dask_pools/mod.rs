//! `/labs/{username}/dask-pools`: the routes for clients of Dask pools.

mod problems;
mod scheduler;

pub(crate) use scheduler::{
    __path_connect_scheduler, __path_report_workers, connect_scheduler, report_workers,
};

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{IF_MATCH, LOCATION};
use http::{HeaderMap, StatusCode};
use tokio_util::sync::CancellationToken;
use wasmspawner_core::policy::spawn::{Child, ChildRequest};
use wasmspawner_core::users::access::{Access, Permit};

use self::problems::{another_pool, of_spawn, unknown_pool};
use super::events::{LastSeen, event_stream, stream};
use crate::auth::{Authenticator, Caller};
use crate::fair_use::FairUse;
use crate::openapi::answers::{StartRefused, StreamRefused};
use crate::problem::Problem;
use crate::request::body::JsonBytes;
use crate::request::location;
use crate::request::path::{LabPath, PoolPath};
use crate::request::prefix::Prefix;
use crate::wire;
use wasmspawner_spawner::{Labs, Pools};
use wasmspawner_telemetry::Metrics;

/// The names of a lab's Dask pools.
#[utoipa::path(
    get, path = "/labs/{username}/dask-pools", tag = "dask", operation_id = "list_pools",
    responses((status = 200, description = "The names, sorted", body = Vec<String>))
)]
pub(crate) async fn list_pools(
    State(pools): State<Pools>,
    caller: Caller,
    LabPath(lab): LabPath,
) -> Result<Json<Vec<String>>, Problem> {
    caller.may(Access::ReadOrStop(&lab))?;
    let names = pools.of_lab(&lab)?.into_iter().filter_map(|key| key.child);
    Ok(Json(names.map(|child| child.name.to_string()).collect()))
}

/// Starts a Dask pool: a scheduler, and workers in the environment of the lab.
///
/// The answer comes as soon as the site's policies have agreed; the pool's events report the further progress.
#[utoipa::path(
    post, path = "/labs/{username}/dask-pools/{pool}", tag = "dask", operation_id = "start_pool",
    request_body = wire::DaskPoolBody,
    responses(
        (status = 201, description = "The pool is being started", body = wire::DaskPool,
            headers(("location" = String, description = "The pool"))),
        StartRefused,
        (status = 404, description = "No such lab", body = crate::problem::ErrorBody),
        (status = 409, description = "There is a pool of this name, the lab does not run, or this site starts no pools", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn start_pool(
    State(pools): State<Pools>,
    State(authenticator): State<Authenticator>,
    State(prefix): State<Prefix>,
    State(fair_use): State<FairUse>,
    caller: Caller,
    PoolPath(key): PoolPath,
    request: Request,
) -> Result<Response, Problem> {
    let permit = caller.may(Access::Spawn(&key.lab))?;
    let JsonBytes(body) = JsonBytes::from_request(request, &()).await?;
    let wire::ParsedPool { options, env, pool } = wire::parse_pool(&body)?;
    pools.can_start(&key).map_err(of_spawn)?;
    if let Some(user) = caller.limited() {
        fair_use.child(user)?;
    }
    let identity = authenticator.identity_of(&caller, &key.lab.user).await?;
    let Some(child) = key.child.clone() else { return Err(unknown_pool()) };
    let request = ChildRequest {
        lab: key.lab.clone(),
        name: child.name,
        identity,
        options,
        env,
        child: Child::DaskPool(pool),
        path: location::of_child(&key),
        token: caller.token_for_lab(permit),
        requested_by: caller.username.to_string(),
    };
    pools.start(request).await.map_err(of_spawn)?;
    let pool = pools.get(&key).ok_or_else(unknown_pool)?;
    let location = format!("{}{}", prefix.as_str(), location::of_child(&key));
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(wire::DaskPool::from(&pool))).into_response())
}

/// One Dask pool, also one that has failed.
#[utoipa::path(
    get, path = "/labs/{username}/dask-pools/{pool}", tag = "dask", operation_id = "get_pool",
    responses(
        (status = 200, description = "The pool", body = wire::DaskPool),
        (status = 404, description = "No such pool", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn get_pool(
    State(pools): State<Pools>,
    caller: Caller,
    PoolPath(key): PoolPath,
) -> Result<Json<wire::DaskPool>, Problem> {
    caller.may(Access::ReadOrStop(&key.lab))?;
    pools.require_readable(&key)?;
    let pool = pools.get(&key).ok_or_else(unknown_pool)?;
    Ok(Json(wire::DaskPool::from(&pool)))
}

/// Stops a Dask pool: first its workers, then its scheduler.
///
/// The pool's events report the progress.
#[utoipa::path(
    delete, path = "/labs/{username}/dask-pools/{pool}", tag = "dask", operation_id = "stop_pool",
    params(("If-Match" = Option<String>, Header, description = "The `certificate_digest` of the pool that is meant, in quotes: a later pool of the same name is then not stopped.")),
    responses(
        (status = 202, description = "The pool is being stopped"),
        (status = 403, description = "A policy does not allow it", body = crate::problem::ErrorBody),
        (status = 404, description = "No such pool", body = crate::problem::ErrorBody),
        (status = 412, description = "The pool of this name is not the one that is meant", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn stop_pool(
    State(labs): State<Labs>,
    State(pools): State<Pools>,
    State(authenticator): State<Authenticator>,
    caller: Caller,
    PoolPath(key): PoolPath,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let owner = match caller.may(Access::ReadOrStop(&key.lab))? {
        Permit::Owner => Some(authenticator.identity_of(&caller, &key.lab.user).await?),
        Permit::Administrator => None,
    };
    let meant = headers.get(IF_MATCH).map(|tag| tag.to_str().unwrap_or_default().trim_matches('"'));
    if meant.is_some_and(|meant| !pools.has_certificate(&key, meant)) {
        return Err(another_pool());
    }
    labs.stop(&key, owner.as_ref(), caller.username.as_str()).await.map_err(of_spawn)?;
    Ok(StatusCode::ACCEPTED)
}

/// Changes how many workers a pool, or one of its groups, has.
///
/// A pool that is to have fewer workers gives them back as soon as its scheduler has moved their data to others.
#[utoipa::path(
    post, path = "/labs/{username}/dask-pools/{pool}/scale", tag = "dask", operation_id = "scale_pool",
    request_body = wire::WorkersBody,
    responses(
        (status = 202, description = "The pool is to have that many workers, as far as the user's limit allows", body = wire::ScaledPool),
        (status = 403, description = "A policy does not allow it", body = crate::problem::ErrorBody),
        (status = 404, description = "No such pool", body = crate::problem::ErrorBody),
        (status = 409, description = "The pool is being stopped", body = crate::problem::ErrorBody),
        (status = 422, description = "Not a number of workers, or no group of the pool", body = crate::problem::ErrorBody),
        (status = 503, description = "The service has just started, or the cluster cannot be reached", body = crate::problem::ErrorBody,
            headers(("retry-after" = u32, description = "Seconds"))),
    )
)]
pub(crate) async fn scale_pool(
    State(pools): State<Pools>,
    State(authenticator): State<Authenticator>,
    caller: Caller,
    PoolPath(key): PoolPath,
    request: Request,
) -> Result<(StatusCode, Json<wire::ScaledPool>), Problem> {
    let permit = caller.may(Access::Spawn(&key.lab))?;
    let JsonBytes(body) = JsonBytes::from_request(request, &()).await?;
    let resize = wire::parse_workers(&body)?;
    pools.get(&key).ok_or_else(unknown_pool)?;
    let owner = match permit {
        Permit::Owner => Some(authenticator.identity_of(&caller, &key.lab.user).await?),
        Permit::Administrator => None,
    };
    pools.scale(&key, resize, owner.as_ref()).await.map_err(of_spawn)?;
    let pool = pools.get(&key).ok_or_else(unknown_pool)?;
    Ok((StatusCode::ACCEPTED, Json(wire::ScaledPool::new(&pool))))
}

/// The events of the operation under way on a pool, or of the last one; as the events of labs.
#[utoipa::path(
    get, path = "/labs/{username}/dask-pools/{pool}/events", tag = "dask", operation_id = "follow_pool_events",
    params(
        ("Last-Event-ID" = Option<String>, Header, description = "The last event already seen; the stream goes on after it."),
        ("last_event_id" = Option<String>, Query, description = "The same, for clients that cannot send headers"),
    ),
    responses(
        (status = 200, description = "The events; the schema is that of one of them", body = wire::StreamEvent, content_type = "text/event-stream"),
        (status = 404, description = "No record of such a pool", body = crate::problem::ErrorBody),
        StreamRefused,
    )
)]
pub(crate) async fn follow_pool_events(
    State(labs): State<Labs>,
    State(metrics): State<Metrics>,
    State(shutdown): State<CancellationToken>,
    State(fair_use): State<FairUse>,
    caller: Caller,
    PoolPath(key): PoolPath,
    LastSeen(last_seen): LastSeen,
) -> Result<Response, Problem> {
    caller.may(Access::ReadOrStop(&key.lab))?;
    let reader = labs.events(&key, last_seen).ok_or_else(unknown_pool)?;
    let slot = caller.limited().map(|user| fair_use.stream(user)).transpose()?;
    Ok(event_stream(stream::follow(reader, |_| None, (metrics.sse_reader(), slot), shutdown)))
}
