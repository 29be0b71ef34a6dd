//! `/labs/{username}/kernels/{kernel}/launcher`: the routes for the launcher in a kernel's pod.

use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures::stream::unfold;
use http::StatusCode;
use http::request::Parts;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fair_use::FairUse;
use crate::problem::Problem;
use crate::request::body::JsonBytes;
use crate::request::path::KernelPath;
use crate::routes::events::event_stream;
use crate::routes::pod_program;
use crate::wire;
use wasmspawner_spawner::{Kernels, Labs, LauncherCommand};

/// The commands for a kernel's launcher, as server-sent events: `signal` (`number`, `signum`) and `launch` (`number`).
///
/// The credential is the launcher's own token, which is valid for its kernel alone. A later connection replaces an earlier
/// one.
#[utoipa::path(
    get, path = "/labs/{username}/kernels/{kernel}/launcher", tag = "kernels", operation_id = "connect_launcher",
    responses(
        (status = 200, description = "The commands", body = String, content_type = "text/event-stream"),
        (status = 503, description = "Too many launchers are connected", body = crate::problem::ErrorBody,
            headers(("retry-after" = u32, description = "Seconds"))),
    )
)]
pub(crate) async fn connect_launcher(
    State(labs): State<Labs>,
    State(kernels): State<Kernels>,
    State(shutdown): State<CancellationToken>,
    KernelPath(key): KernelPath,
    parts: Parts,
) -> Result<Response, Problem> {
    pod_program::check(&labs, &key, &parts.headers, &parts.extensions)?;
    let commands = kernels.connect_launcher(&key).ok_or_else(pod_program::too_many)?;
    let frames = unfold(commands, async |mut commands| Some((frame(commands.recv().await?), commands)));
    Ok(event_stream(pod_program::stream(frames, shutdown)))
}

/// What a kernel's launcher says about the kernel's process.
#[utoipa::path(
    put, path = "/labs/{username}/kernels/{kernel}/launcher", tag = "kernels", operation_id = "report_process",
    request_body = wire::Process,
    responses(
        (status = 204, description = "It is noted"),
        (status = 422, description = "Not a report", body = crate::problem::ErrorBody),
        (status = 429, description = "Too many requests of this user", body = crate::problem::ErrorBody,
            headers(("retry-after" = u32, description = "Seconds"))),
    )
)]
pub(crate) async fn report_process(
    State(labs): State<Labs>,
    State(kernels): State<Kernels>,
    State(fair_use): State<FairUse>,
    KernelPath(key): KernelPath,
    request: Request,
) -> Result<StatusCode, Problem> {
    pod_program::check(&labs, &key, request.headers(), request.extensions())?;
    let _turn = fair_use.request(&key.lab.user).await?;
    let JsonBytes(body) = JsonBytes::from_request(request, &()).await?;
    kernels.report_process(&key, wire::parse_process(&body)?);
    Ok(StatusCode::NO_CONTENT)
}

fn frame(command: LauncherCommand) -> Bytes {
    let (event, data) = match command {
        LauncherCommand::Signal { number, signum } => {
            ("signal", json!({ "number": number, "signum": signum }))
        }
        LauncherCommand::Launch { number } => ("launch", json!({ "number": number })),
    };
    Bytes::from(format!("event: {event}\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_event() {
        let signal = frame(LauncherCommand::Signal { number: 1, signum: 2 });
        assert_eq!(signal, "event: signal\ndata: {\"number\":1,\"signum\":2}\n\n");
        let launch = frame(LauncherCommand::Launch { number: 2 });
        assert_eq!(launch, "event: launch\ndata: {\"number\":2}\n\n");
    }
}
