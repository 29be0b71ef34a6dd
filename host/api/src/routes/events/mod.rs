//! `/labs/{username}/events`: server-sent events.

mod frame;
pub(crate) mod stream;

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use http::request::Parts;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::lifecycle::LabStatus;
use wasmspawner_core::lifecycle::progress::EventId;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::fair_use::FairUse;
use crate::openapi::answers::StreamRefused;
use crate::problem::Problem;
use crate::request::path::LabPath;
use wasmspawner_spawner::Labs;
use wasmspawner_telemetry::Metrics;

/// The header that keeps nginx from buffering the events.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The events of the operation under way, or of the last one.
///
/// They begin with the first event, or after the event whose id is given. Types: `info` and `error` (text), `progress`
/// (0 to 100), `stage` (JSON: `stage`, `reason`, `message`, `progress`, `at`), and at the end `complete` or `failed`,
/// after which the stream closes. The `complete` of a start has a further field, `url`, at which the Hub
/// reaches the lab.
#[utoipa::path(
    get, path = "/labs/{username}/events", tag = "labs", operation_id = "follow_events",
    params(
        ("Last-Event-ID" = Option<String>, Header, description = "The last event already seen; the stream goes on after it. An event of an older operation starts the present one from its beginning."),
        ("last_event_id" = Option<String>, Query, description = "The same, for clients that cannot send headers"),
    ),
    responses(
        (status = 200, description = "The events; the schema is that of one of them", body = crate::wire::StreamEvent, content_type = "text/event-stream"),
        (status = 404, description = "No record of such a lab", body = crate::problem::ErrorBody),
        StreamRefused,
    )
)]
pub(crate) async fn follow_events(
    State(labs): State<Labs>,
    State(metrics): State<Metrics>,
    State(shutdown): State<CancellationToken>,
    State(fair_use): State<FairUse>,
    caller: Caller,
    LabPath(key): LabPath,
    LastSeen(last_seen): LastSeen,
) -> Result<Response, Problem> {
    caller.may(Access::ReadOrStop(&key))?;
    let key = key.into();
    labs.require_readable(&key)?;
    let reader = labs
        .events(&key, last_seen)
        .ok_or_else(|| Problem::unknown_lab("there is no record of such a lab"))?;
    let slot = caller.limited().map(|user| fair_use.stream(user)).transpose()?;
    // The lab may have been stopped since the operation that the reader follows.
    let url_of = move |job_id| {
        let lab =
            labs.lab(&key).filter(|lab| lab.job_id == Some(job_id) && lab.status == LabStatus::Running)?;
        lab.url.clone()
    };
    Ok(event_stream(stream::follow(reader, url_of, (metrics.sse_reader(), slot), shutdown)))
}

/// Creates an answer that is a stream of events.
pub(crate) fn event_stream(
    stream: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store"), (BUFFERING, "no")];
    (headers, Body::from_stream(stream)).into_response()
}

/// The id of the last event that the client has seen, if the request contains one.
pub(crate) struct LastSeen(pub(crate) Option<EventId>);

impl<S: Sync> FromRequestParts<S> for LastSeen {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(last_seen(&parts.headers, parts.uri.query().unwrap_or_default())))
    }
}

/// Returns the id in the header or in the query. The header wins, because a reconnecting browser sends it to its
/// original address. An id that cannot be parsed counts as none. The stream then starts from the beginning, as it does
/// for an id of an older operation.
fn last_seen(headers: &HeaderMap, query: &str) -> Option<EventId> {
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let param = query.split('&').find_map(|pair| pair.strip_prefix("last_event_id="));
    header.or(param)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_id_comes_from_the_header_or_the_query() {
        let (one, two) = ("01890a5d-ac96-774b-bcce-b302099a8057-1", "01890a5d-ac96-774b-bcce-b302099a8057-2");
        let with = |id: &str| -> HeaderMap {
            [(HeaderName::from_static("last-event-id"), id.parse().unwrap())].into_iter().collect()
        };
        let number = |id: Option<EventId>| id.map(|id| id.number);
        assert_eq!(number(last_seen(&with(one), &format!("last_event_id={two}"))), Some(1));
        assert_eq!(number(last_seen(&HeaderMap::new(), &format!("x=1&last_event_id={two}"))), Some(2));
        assert_eq!(number(last_seen(&with("nonsense"), "")), None);
        assert_eq!(number(last_seen(&HeaderMap::new(), "")), None);
    }
}
