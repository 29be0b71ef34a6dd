//! `/labs`, `/labs/{username}`, `/labs/{username}/create`, `/labs/{username}/events` and `/user-status`.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{HOST, LOCATION};
use http::{HeaderMap, StatusCode};
use tokio_util::sync::CancellationToken;
use wasmspawner_core::images::IMAGE;
use wasmspawner_core::lifecycle::LabStatus;
use wasmspawner_core::lifecycle::progress::{Entry, LoggedEntry};
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::users::access::Access;
use wasmspawner_spawner::{Choices, EventReader, Labs};
use wasmspawner_telemetry::Metrics;

use super::body::{self, ParsedLab};
use super::errors::NubladoErrors;
use super::event::{EventWriter, KEEP_ALIVE};
use super::state::LabState;
use crate::auth::{Authenticator, Caller};
use crate::fair_use::FairUse;
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use crate::request::body::JsonBytes;
use crate::request::location;
use crate::request::path::LabPath;
use crate::request::prefix::NubladoPrefix;
use crate::routes::events::{event_stream, stream};
use crate::routes::{lab, spawn};
use crate::state::Api;

/// The names of users whose labs run.
#[utoipa::path(
    get, path = "/spawner/v1/labs", tag = "nublado", operation_id = "nublado_list_labs",
    responses((status = 200, description = "Usernames, sorted", body = Vec<String>), (status = "4XX", description = "Refused", body = NubladoErrors))
)]
pub(crate) async fn list_labs(
    State(labs): State<Labs>,
    caller: Caller,
) -> Result<Json<BTreeSet<String>>, Problem> {
    caller.may(Access::ListLabs)?;
    let running = labs.list()?.into_iter().filter(|(_, status)| *status == LabStatus::Running);
    Ok(Json(running.map(|(key, _)| key.user.into()).collect()))
}

/// The lab of a user.
#[utoipa::path(
    get, path = "/spawner/v1/labs/{username}", tag = "nublado", operation_id = "nublado_get_lab",
    responses((status = 200, description = "The lab", body = LabState), (status = "4XX", description = "Refused", body = NubladoErrors))
)]
pub(crate) async fn get_lab(
    State(labs): State<Labs>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<Json<LabState>, Problem> {
    caller.may(Access::ReadOrStop(&key))?;
    state(&labs, &caller, key)
}

/// The caller's lab.
#[utoipa::path(
    get, path = "/spawner/v1/user-status", tag = "nublado", operation_id = "nublado_get_own_lab",
    responses((status = 200, description = "The lab", body = LabState), (status = "4XX", description = "Refused", body = NubladoErrors))
)]
pub(crate) async fn get_own_lab(State(labs): State<Labs>, caller: Caller) -> Result<Json<LabState>, Problem> {
    let key = LabKey::default_server(caller.username.clone());
    caller.may(Access::ReadOrStop(&key))?;
    state(&labs, &caller, key)
}

fn state(labs: &Labs, caller: &Caller, key: LabKey) -> Result<Json<LabState>, Problem> {
    let own = caller.own_identity().filter(|identity| identity.username == key.user);
    Ok(Json(LabState::from_snapshot(&*lab::find(labs, key)?, own)))
}

/// Creates a lab.
///
/// The answer comes as soon as the site's policies have agreed; the lab's events report the further progress.
#[utoipa::path(
    post, path = "/spawner/v1/labs/{username}/create", tag = "nublado", operation_id = "nublado_create_lab",
    request_body = body::LabSpecification,
    responses(
        (status = 201, description = "The lab is being started", headers(("location" = String, description = "The URL of the lab"))),
        (status = "4XX", description = "Refused", body = NubladoErrors),
    )
)]
pub(crate) async fn create_lab(
    State(api): State<Api>,
    State(prefix): State<NubladoPrefix>,
    State(choices): State<Choices>,
    caller: Caller,
    LabPath(key): LabPath,
    request: Request,
) -> Result<Response, Problem> {
    caller.may(Access::Spawn(&key))?;
    let base = base_url(request.headers());
    let JsonBytes(body) = JsonBytes::from_request(request, &()).await?;
    let ParsedLab { spawn, image_option } = body::parse(&body)?;
    if image_option.is_none() {
        let identity = api.authenticator.identity_of(&caller, &key.user).await?;
        if choices.image_menu(&identity, &key.server).await?.is_some() {
            let msg = "no image is named; name it in image_list, image_dropdown, image_class or image_tag";
            return Err(Problem::at(&["body", "options"], ProblemKind::Missing, msg));
        }
    }
    let started = spawn::start(&api, &caller, &key, spawn).await;
    let lab = started.map_err(|problem| problem.relocated(&["body", "options", IMAGE], image_option))?;
    let url = format!("{base}{}/spawner/v1{}", prefix.as_str(), location::below_prefix(&lab));
    Ok((StatusCode::CREATED, [(LOCATION, url)], Json(())).into_response())
}

/// Returns the scheme and the host of the request, or nothing if the client has sent no host. An ingress terminates TLS.
fn base_url(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = text("x-forwarded-proto").filter(|scheme| matches!(*scheme, "http" | "https"));
    let host = text("x-forwarded-host").or_else(|| text(HOST.as_str()));
    let plain =
        |host: &&str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
    match host.filter(plain).filter(|host| !host.is_empty()) {
        Some(host) => format!("{}://{host}", scheme.unwrap_or("http")),
        None => String::new(),
    }
}

/// Deletes a lab.
///
/// The answer comes when the lab is gone. A lab that is starting is stopped, and a deletion under way is joined.
#[utoipa::path(
    delete, path = "/spawner/v1/labs/{username}", tag = "nublado", operation_id = "nublado_delete_lab",
    responses(
        (status = 204, description = "The lab is gone"),
        (status = "4XX", description = "Refused", body = NubladoErrors),
        (status = 500, description = "The lab could not be deleted", body = NubladoErrors),
    )
)]
pub(crate) async fn delete_lab(
    State(labs): State<Labs>,
    State(authenticator): State<Authenticator>,
    State(shutdown): State<CancellationToken>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<StatusCode, Problem> {
    lab::stop(&labs, &authenticator, &caller, &key).await?;
    let Some(stop) = labs.events(&key.into(), None) else { return Ok(StatusCode::NO_CONTENT) };
    match shutdown.run_until_cancelled(last_entry(stop)).await.flatten() {
        Some(Entry::Failed(message)) => Err(Problem::new(ProblemKind::DeleteFailed, message)),
        Some(_) => Ok(StatusCode::NO_CONTENT),
        None => Err(Problem::not_ready()),
    }
}

/// Waits for the end of an operation. Returns `None` if this process does not see it.
async fn last_entry(mut operation: EventReader) -> Option<Entry> {
    while let Some(entries) = operation.next().await {
        if let Some(last) = entries.into_iter().find(|logged| logged.entry.is_last()) {
            return Some(last.entry);
        }
    }
    None
}

/// The events of the operation under way, or of the last one.
///
/// Types: `info` and `error`, and at the end `complete` or `failed`, after which the stream closes. The data is JSON with
/// `message`, and with `progress` where that is known.
#[utoipa::path(
    get, path = "/spawner/v1/labs/{username}/events", tag = "nublado", operation_id = "nublado_follow_events",
    responses(
        (status = 200, description = "The events", body = String, content_type = "text/event-stream"),
        (status = "4XX", description = "Refused", body = NubladoErrors),
    )
)]
pub(crate) async fn follow_events(
    State(labs): State<Labs>,
    State(metrics): State<Metrics>,
    State(shutdown): State<CancellationToken>,
    State(fair_use): State<FairUse>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<Response, Problem> {
    caller.may(Access::ReadOrStop(&key))?;
    let key = key.into();
    labs.require_readable(&key)?;
    let missing = || Problem::unknown_lab("there is no record of such a lab");
    let reader = labs.events(&key, None).ok_or_else(missing)?;
    let slot = caller.limited().map(|user| fair_use.stream(user)).transpose()?;
    let mut writer = EventWriter::default();
    let write = move |frames: &mut String, _, logged: &LoggedEntry| writer.write(frames, &logged.entry);
    let format = stream::Format { greeting: None, keep_alive: KEEP_ALIVE };
    Ok(event_stream(stream::follow_as(reader, format, write, (metrics.sse_reader(), slot), shutdown)))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn the_location_has_the_host_that_the_client_has_asked() {
        for (headers, expected) in [
            (&[][..], ""),
            (&[("host", "spawner:8090")], "http://spawner:8090"),
            (&[("host", "data.example.org"), ("x-forwarded-proto", "https")], "https://data.example.org"),
            (
                &[("host", "10.0.0.1:8090"), ("x-forwarded-host", "data.example.org")],
                "http://data.example.org",
            ),
            (&[("host", "[::1]:8090"), ("x-forwarded-proto", "ftp")], "http://[::1]:8090"),
            (&[("host", "a/b?c")], ""),
        ] {
            let headers =
                headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            assert_eq!(base_url(&headers.collect()), expected);
        }
    }
}
