//! Forwards a single request.

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use futures::{Stream, StreamExt as _};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, RETRY_AFTER, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use serde_json::json;
use tokio::time::Instant;

use super::request::RequestSummary;
use super::{Fault, Shared, watch};

/// The error that closes the connection without an answer, or within one.
pub(super) fn broken() -> anyhow::Error {
    anyhow::anyhow!("the proxy breaks the connection")
}

/// Forwards a request to the API server, unless a fault applies. An error closes the connection.
pub(super) async fn forward(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> anyhow::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(Body::new(body), usize::MAX).await?;
    let about = RequestSummary::from_request(&parts.method, &parts.uri, &body);
    shared.count(about.what.clone());
    let fault = shared.fault_for(&about.line, |fault| !fault.is_of_open_watches());
    match &fault {
        Some(Fault::Drop) => return Err(broken()),
        Some(Fault::Refuse { code, reason, retry_after }) => return refusal(*code, reason, *retry_after),
        Some(Fault::Delay(delay)) => tokio::time::sleep_until(Instant::now() + *delay).await,
        _ => {}
    }
    let mut upstream = Request::builder().method(parts.method).uri(parts.uri);
    if let Some(headers) = upstream.headers_mut() {
        *headers = end_to_end(parts.headers);
    }
    let answer = shared.upstream.send(upstream.body(body.to_vec().into())?).await?;
    let (mut parts, body) = answer.into_parts();
    parts.headers = end_to_end(parts.headers);
    let body = Body::new(body);
    if about.is_watch && parts.status.is_success() {
        return Ok(Response::from_parts(parts, watch::body(shared, about.line, body)));
    }
    let body = to_bytes(body, usize::MAX).await?;
    match fault {
        Some(Fault::LoseAnswer) => Err(broken()),
        Some(Fault::Truncate) => {
            let rest = futures::stream::iter([Err(broken())]);
            Ok(Response::from_parts(parts, Body::from_stream(half(&body).chain(rest))))
        }
        Some(Fault::Stall) => {
            let rest = futures::stream::pending();
            Ok(Response::from_parts(parts, Body::from_stream(half(&body).chain(rest))))
        }
        _ => Ok(Response::from_parts(parts, Body::from(body))),
    }
}

fn half(body: &Bytes) -> impl Stream<Item = anyhow::Result<Bytes>> + use<> {
    futures::stream::iter([Ok(body.slice(..body.len() / 2))])
}

/// Removes the headers that apply to a single connection only.
fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    for name in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}

fn refusal(code: u16, reason: &str, retry_after: Option<u32>) -> anyhow::Result<Response<Body>> {
    let mut answer = Response::builder().status(code).header(CONTENT_TYPE, "application/json");
    if let Some(seconds) = retry_after {
        answer = answer.header(RETRY_AFTER, seconds);
    }
    Ok(answer.body(Body::from(status(code, reason).to_string()))?)
}

/// An error in the form of Kubernetes.
pub(super) fn status(code: u16, reason: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": format!("a test lets this fail with {code}"),
        "reason": reason,
        "code": code,
    })
}
