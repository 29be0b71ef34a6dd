//! A time limit for each request.

use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// Limits the time of the client's requests. A request fails if the whole answer, including its body, has not arrived
/// within `limit`. An API server or a proxy that stalls in the middle of an answer is thus retried like one that does
/// not answer. Not for watches. This is the innermost layer, so time spent waiting for the rate limiter does not count.
pub(super) fn timed(client: Client, limit: Duration) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let answer = async {
                let (head, body) = client.send(request).await?.into_parts();
                Ok(Response::from_parts(head, Body::from(body.collect_bytes().await?)))
            };
            match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer.map_err(|error: kube::Error| tower::BoxError::from(error)),
                Err(elapsed) => Err(elapsed.into()),
            }
        }
    });
    Client::new(service, namespace)
}
