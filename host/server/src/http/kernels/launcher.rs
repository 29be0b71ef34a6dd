//! `/labs/{username}/kernels/{kernel}/launcher`: what the launcher in a kernel's pod asks and reports.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures::Stream;
use futures::stream::unfold;
use http::{HeaderMap, StatusCode};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::spawn_key::SpawnKey;

use crate::http::auth::bearer;
use crate::http::body::JsonBytes;
use crate::http::events::event_stream;
use crate::http::path::KernelPath;
use crate::http::problem::Problem;
use crate::http::wire;
use crate::spawner::{Labs, LauncherCommand};

/// A comment that is sent every 15 s without a command, so that both sides notice when the connection is dead.
const KEEP_ALIVE: &[u8] = b": still there\n\n";
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);

/// The commands for a kernel's launcher, as server-sent events: `signal` (`number`, `signum`) and `launch` (`number`).
///
/// The credential is the launcher's own token, which is valid for its kernel alone. A later connection replaces an earlier
/// one.
#[utoipa::path(
    get, path = "/labs/{username}/kernels/{kernel}/launcher", tag = "kernels", operation_id = "connect_launcher",
    responses(
        (status = 200, description = "The commands", body = String, content_type = "text/event-stream"),
        (status = 503, description = "Too many launchers are connected", body = crate::http::problem::ErrorBody,
            headers(("retry-after" = u32, description = "Seconds"))),
    )
)]
pub(in crate::http) async fn connect_launcher(
    State(labs): State<Labs>,
    State(shutdown): State<CancellationToken>,
    KernelPath(key): KernelPath,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check(&labs, &key, &headers)?;
    let receiver = labs.connect_launcher(&key).ok_or_else(|| {
        let msg = "too many kernels are connected; their pods try again by themselves";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_launchers", msg).retry_after(5)
    })?;
    Ok(event_stream(commands(receiver, shutdown)))
}

/// What a kernel's launcher says about the kernel's process.
#[utoipa::path(
    put, path = "/labs/{username}/kernels/{kernel}/launcher", tag = "kernels", operation_id = "report_process",
    request_body = wire::Process,
    responses(
        (status = 204, description = "It is noted"),
        (status = 400, description = "The body is not JSON", body = crate::http::problem::ErrorBody),
        (status = 413, description = "The body is too large", body = crate::http::problem::ErrorBody),
        (status = 415, description = "The body does not say that it is JSON", body = crate::http::problem::ErrorBody),
        (status = 422, description = "Not a report", body = crate::http::problem::ErrorBody),
    )
)]
pub(in crate::http) async fn report_process(
    State(labs): State<Labs>,
    KernelPath(key): KernelPath,
    headers: HeaderMap,
    request: Request,
) -> Result<StatusCode, Problem> {
    check(&labs, &key, &headers)?;
    let JsonBytes(body) = JsonBytes::from_request(request, &()).await?;
    labs.report_process(&key, wire::parse_process(&body)?);
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses everybody but the launcher of this kernel. Whether there is such a kernel is not told.
fn check(labs: &Labs, key: &SpawnKey, headers: &HeaderMap) -> Result<(), Problem> {
    let token = bearer::token(headers).map_err(Problem::from)?;
    if labs.is_launcher(key, &token) {
        return Ok(());
    }
    let msg = "this is not the token of the kernel's launcher";
    Err(Problem::at(StatusCode::UNAUTHORIZED, &["header", "authorization"], "invalid_token", msg))
}

fn commands(
    commands: mpsc::Receiver<LauncherCommand>,
    shutdown: CancellationToken,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    // The first bytes are sent at once, so that the launcher knows that it is connected.
    let state = (commands, shutdown, true);
    unfold(state, |(mut commands, shutdown, is_new)| async move {
        if is_new {
            return Some((Ok(Bytes::from_static(KEEP_ALIVE)), (commands, shutdown, false)));
        }
        let next = timeout(KEEP_ALIVE_EVERY, shutdown.run_until_cancelled(commands.recv())).await;
        let bytes = match next {
            Ok(Some(Some(command))) => frame(command),
            // Another connection has replaced this one, the kernel is gone, or the service ends.
            Ok(_) => return None,
            Err(_) => Bytes::from_static(KEEP_ALIVE),
        };
        Some((Ok(bytes), (commands, shutdown, false)))
    })
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
