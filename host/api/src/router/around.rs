//! The processing that all routes share: request id, tracing span, limits on the request's head, metrics, and the
//! format of errors.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, Method, StatusCode};
use tokio::time::Instant;
use tracing::Instrument;

use crate::problem::kind::ProblemKind;
use crate::problem::request_id::{self, RequestId};
use crate::problem::{Problem, render};
use wasmspawner_telemetry::{Metrics, trace};

/// The size limit of all headers of a request, in bytes.
const HEADERS_SIZE: usize = 32 * 1024;
/// The limit on the number of a request's headers.
const HEADERS_COUNT: usize = 100;
/// The size limit of path and query, in bytes.
const TARGET_LENGTH: usize = 8 * 1024;

/// The outermost layer of the router.
pub(crate) async fn every_request(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let id = RequestId::from_headers(request.headers());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let route = route.unwrap_or_else(|| "unknown".to_owned());
    let span = tracing::info_span!("request", request_id = id.as_str(), %method, route, caller = tracing::field::Empty);
    let traced = trace::request(&method, &route, request.headers());
    let answering = async {
        let began = Instant::now();
        let answer = match refuse_head(&request) {
            Some(problem) => problem.into_response(),
            None => next.run(request).await,
        };
        let mut response = render(answer, &id);
        finish(response.headers_mut(), &id);
        let (status, took) = (response.status(), began.elapsed());
        log(&method, status, took);
        metrics.http_request(&method, &route, status, took, trace::current_trace());
        trace::answered(&traced, Some(status));
        response
    };
    answering.instrument(span).instrument(traced.clone()).await
}

/// Answers the request of a handler that panicked. The panic's message goes only to the log, because it may hold
/// private data.
#[expect(clippy::needless_pass_by_value, reason = "the signature is tower-http's")]
pub(crate) fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    tracing::error!(panic = message.as_deref().unwrap_or("(no message)"), "a handler panicked");
    Problem::internal().into_response()
}

fn refuse_head(request: &Request) -> Option<Problem> {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > TARGET_LENGTH {
        let msg = format!("path and query have {target} bytes; at most {TARGET_LENGTH} are allowed");
        return Some(Problem::new(ProblemKind::UriTooLong, msg));
    }
    let size: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if size > HEADERS_SIZE || request.headers().len() > HEADERS_COUNT {
        let msg = format!("at most {HEADERS_COUNT} headers and {HEADERS_SIZE} bytes of headers are allowed");
        return Some(Problem::new(ProblemKind::HeadersTooLarge, msg));
    }
    None
}

fn finish(headers: &mut HeaderMap, id: &RequestId) {
    if let Some(id) = id.to_header() {
        headers.insert(request_id::HEADER, id);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Chooses the log level: reads are frequent (debug), changes are few (info), server errors need attention (warn).
fn log(method: &Method, status: StatusCode, took: Duration) {
    let (status_code, took_ms) = (status.as_u16(), took.as_millis());
    if status.is_server_error() {
        tracing::warn!(status = status_code, took_ms, "answered");
    } else if matches!(*method, Method::GET | Method::HEAD) {
        tracing::debug!(status = status_code, took_ms, "answered");
    } else {
        tracing::info!(status = status_code, took_ms, "answered");
    }
}
