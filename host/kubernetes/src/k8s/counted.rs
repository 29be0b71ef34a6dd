//! Counts requests to the Kubernetes API.

use std::time::Instant;

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use tower::service_fn;
use tracing::Instrument;

use super::health::Health;
use crate::leadership::is_refused_by_guard;
use wasmspawner_telemetry::{Metrics, trace};

/// Wraps the client: each request is counted by verb and status, and its result updates `health`.
pub(super) fn counted(client: Client, metrics: Metrics, health: Health) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let (client, metrics, health) = (client.clone(), metrics.clone(), health.clone());
        async move {
            let verb = verb(&request);
            let began = Instant::now();
            let span = trace::kubernetes_request(verb, request.method(), request.uri().path());
            let answer: Result<Response<Body>, _> = client.send(request).instrument(span.clone()).await;
            let failed =
                |status: StatusCode| status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
            if !answer.as_ref().is_err_and(is_refused_by_guard) {
                health.note(answer.as_ref().is_ok_and(|response| !failed(response.status())));
            }
            let status = answer.as_ref().ok().map(|response| response.status().as_u16());
            metrics.kubernetes_request(verb, status, began.elapsed());
            trace::answered(&span, answer.as_ref().ok().map(Response::status));
            answer
        }
    });
    Client::new(service, namespace)
}

fn verb(request: &Request<Body>) -> &'static str {
    let watches =
        request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"));
    match *request.method() {
        Method::GET if watches => "watch",
        Method::GET => "read",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_counted_apart_from_a_read() {
        for (uri, expected) in [("/api/v1/pods?&watch=true", "watch"), ("/api/v1/pods?limit=500", "read")] {
            let request = Request::get(uri).body(Body::empty()).unwrap();
            assert_eq!(verb(&request), expected);
        }
    }
}
