//! A time limit for one request.

use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// The same client, whose requests fail when no answer begins within a time. The time that a request waits for its turn
/// does not count: this is the innermost layer.
pub(super) fn timed(client: Client, limit: Duration) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            match tokio::time::timeout(limit, client.send(request)).await {
                Ok(answer) => answer.map_err(tower::BoxError::from),
                Err(elapsed) => Err(elapsed.into()),
            }
        }
    });
    Client::new(service, namespace)
}
