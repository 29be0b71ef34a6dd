//! `/labs/{username}/kernels`: the routes for clients of kernels.

mod launcher;
mod problems;

pub(crate) use launcher::{__path_connect_launcher, __path_report_process, connect_launcher, report_process};

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::LOCATION;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::policy::spawn::{Child, ChildRequest};
use wasmspawner_core::users::access::{Access, Permit};

use self::problems::{of_spawn, unknown_kernel};
use super::events::{LastSeen, event_stream, stream};
use crate::auth::{Authenticator, Caller};
use crate::fair_use::FairUse;
use crate::openapi::answers::{StartRefused, StreamRefused};
use crate::problem::Problem;
use crate::request::body::JsonBytes;
use crate::request::location;
use crate::request::path::{KernelPath, LabPath};
use crate::request::prefix::Prefix;
use crate::wire;
use wasmspawner_spawner::{Kernels, Labs};
use wasmspawner_telemetry::Metrics;

/// The kernels of a lab that the service runs.
#[utoipa::path(
    get, path = "/labs/{username}/kernels", tag = "kernels", operation_id = "list_kernels",
    responses((status = 200, description = "The kernels, sorted by their ids", body = Vec<wire::Kernel>))
)]
pub(crate) async fn list_kernels(
    State(kernels): State<Kernels>,
    caller: Caller,
    LabPath(lab): LabPath,
) -> Result<Json<Vec<wire::Kernel>>, Problem> {
    caller.may(Access::ReadOrStop(&lab))?;
    Ok(Json(kernels.of_lab(&lab)?.iter().map(wire::Kernel::from).collect()))
}

/// Starts a kernel in a pod of its own, in the environment of its lab.
///
/// The answer comes as soon as the site's policies have agreed; the kernel's events report the further progress.
#[utoipa::path(
    post, path = "/labs/{username}/kernels/{kernel}", tag = "kernels", operation_id = "start_kernel",
    request_body = wire::KernelBody,
    responses(
        (status = 201, description = "The kernel is being started", body = wire::Kernel,
            headers(("location" = String, description = "The kernel"))),
        StartRefused,
        (status = 404, description = "No such lab", body = crate::problem::ErrorBody),
        (status = 409, description = "There is a kernel of this id, the lab does not run, or this site starts no kernels", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn start_kernel(
    State(kernels): State<Kernels>,
    State(authenticator): State<Authenticator>,
    State(prefix): State<Prefix>,
    State(fair_use): State<FairUse>,
    caller: Caller,
    KernelPath(key): KernelPath,
    request: Request,
) -> Result<Response, Problem> {
    let permit = caller.may(Access::Spawn(&key.lab))?;
    let JsonBytes(body) = JsonBytes::from_request(request, &()).await?;
    let wire::ParsedKernel { options, kernel } = wire::parse_kernel(&body)?;
    kernels.can_start(&key).map_err(of_spawn)?;
    if let Some(user) = caller.limited() {
        fair_use.child(user)?;
    }
    let identity = authenticator.identity_of(&caller, &key.lab.user).await?;
    let Some(child) = key.child.clone() else { return Err(unknown_kernel()) };
    let request = ChildRequest {
        lab: key.lab.clone(),
        name: child.name,
        identity,
        options,
        env: BTreeMap::new(),
        child: Child::Kernel(kernel),
        path: location::of_child(&key),
        token: caller.token_for_lab(permit),
        requested_by: caller.username.to_string(),
    };
    kernels.start(request).await.map_err(of_spawn)?;
    let kernel = kernels.get(&key).ok_or_else(unknown_kernel)?;
    let location = format!("{}{}", prefix.as_str(), location::of_child(&key));
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(wire::Kernel::from(&kernel))).into_response())
}

/// One kernel, also one that has failed.
#[utoipa::path(
    get, path = "/labs/{username}/kernels/{kernel}", tag = "kernels", operation_id = "get_kernel",
    responses(
        (status = 200, description = "The kernel", body = wire::Kernel),
        (status = 404, description = "No such kernel", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn get_kernel(
    State(kernels): State<Kernels>,
    caller: Caller,
    KernelPath(key): KernelPath,
) -> Result<Json<wire::Kernel>, Problem> {
    caller.may(Access::ReadOrStop(&key.lab))?;
    kernels.require_readable(&key)?;
    let kernel = kernels.get(&key).ok_or_else(unknown_kernel)?;
    Ok(Json(wire::Kernel::from(&kernel)))
}

/// Ends a kernel and removes its pod.
///
/// The kernel's events report the progress.
#[utoipa::path(
    delete, path = "/labs/{username}/kernels/{kernel}", tag = "kernels", operation_id = "stop_kernel",
    responses(
        (status = 202, description = "The kernel is being ended"),
        (status = 403, description = "A policy does not allow it", body = crate::problem::ErrorBody),
        (status = 404, description = "No such kernel", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn stop_kernel(
    State(labs): State<Labs>,
    State(authenticator): State<Authenticator>,
    caller: Caller,
    KernelPath(key): KernelPath,
) -> Result<StatusCode, Problem> {
    let owner = match caller.may(Access::ReadOrStop(&key.lab))? {
        Permit::Owner => Some(authenticator.identity_of(&caller, &key.lab.user).await?),
        Permit::Administrator => None,
    };
    labs.stop(&key, owner.as_ref(), caller.username.as_str()).await.map_err(of_spawn)?;
    Ok(StatusCode::ACCEPTED)
}

/// The events of the operation under way on a kernel, or of the last one; as the events of labs.
#[utoipa::path(
    get, path = "/labs/{username}/kernels/{kernel}/events", tag = "kernels", operation_id = "follow_kernel_events",
    params(
        ("Last-Event-ID" = Option<String>, Header, description = "The last event already seen; the stream goes on after it."),
        ("last_event_id" = Option<String>, Query, description = "The same, for clients that cannot send headers"),
    ),
    responses(
        (status = 200, description = "The events; the schema is that of one of them", body = wire::StreamEvent, content_type = "text/event-stream"),
        (status = 404, description = "No record of such a kernel", body = crate::problem::ErrorBody),
        StreamRefused,
    )
)]
pub(crate) async fn follow_kernel_events(
    State(labs): State<Labs>,
    State(metrics): State<Metrics>,
    State(shutdown): State<CancellationToken>,
    State(fair_use): State<FairUse>,
    caller: Caller,
    KernelPath(key): KernelPath,
    LastSeen(last_seen): LastSeen,
) -> Result<Response, Problem> {
    caller.may(Access::ReadOrStop(&key.lab))?;
    let reader = labs.events(&key, last_seen).ok_or_else(unknown_kernel)?;
    let slot = caller.limited().map(|user| fair_use.stream(user)).transpose()?;
    Ok(event_stream(stream::follow(reader, |_| None, (metrics.sse_reader(), slot), shutdown)))
}

/// Sends a signal to the processes of a kernel.
#[utoipa::path(
    post, path = "/labs/{username}/kernels/{kernel}/signal", tag = "kernels", operation_id = "signal_kernel",
    request_body = wire::Signal,
    responses(
        (status = 204, description = "The signal is on its way"),
        (status = 404, description = "No such kernel", body = crate::problem::ErrorBody),
        (status = 409, description = "The kernel's process does not run, or its pod is not connected to the service", body = crate::problem::ErrorBody),
        (status = 422, description = "Not the number of a signal", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn signal_kernel(
    State(kernels): State<Kernels>,
    caller: Caller,
    KernelPath(key): KernelPath,
    request: Request,
) -> Result<StatusCode, Problem> {
    caller.may(Access::ReadOrStop(&key.lab))?;
    let JsonBytes(body) = JsonBytes::from_request(request, &()).await?;
    let signum = wire::parse_signal(&body)?;
    kernels.get(&key).ok_or_else(unknown_kernel)?;
    kernels.signal(&key, signum)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Starts the process of a kernel anew, in the same pod, so that it keeps its address.
///
/// A process that still runs is killed.
#[utoipa::path(
    post, path = "/labs/{username}/kernels/{kernel}/restart", tag = "kernels", operation_id = "restart_kernel",
    responses(
        (status = 202, description = "The new process is being started", body = wire::Kernel),
        (status = 404, description = "No such kernel", body = crate::problem::ErrorBody),
        (status = 409, description = "The kernel's pod is not connected to the service: end the kernel and start it anew", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn restart_kernel(
    State(kernels): State<Kernels>,
    caller: Caller,
    KernelPath(key): KernelPath,
) -> Result<(StatusCode, Json<wire::Kernel>), Problem> {
    caller.may(Access::Spawn(&key.lab))?;
    kernels.get(&key).ok_or_else(unknown_kernel)?;
    kernels.restart(&key)?;
    let kernel = kernels.get(&key).ok_or_else(unknown_kernel)?;
    Ok((StatusCode::ACCEPTED, Json(wire::Kernel::from(&kernel))))
}
