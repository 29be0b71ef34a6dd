//! A client whose connection can be replaced while it is used.

use std::sync::{Arc, PoisonError, RwLock};

use http::Request;
use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// The connection behind a [`Client`], which is replaced when credentials change. Clones share it.
#[derive(Clone, Default)]
pub struct ChangingClient {
    current: Arc<RwLock<Option<Client>>>,
}

/// The error of a request that is sent before there is a connection.
#[derive(Debug, thiserror::Error)]
#[error("the credentials of the cluster could not be read yet")]
struct NotConnected;

impl ChangingClient {
    /// Returns a client that uses the current connection. Until there is one, its requests fail as if the cluster did
    /// not answer.
    pub fn client(&self) -> Client {
        let current = Arc::clone(&self.current);
        let service = service_fn(move |request: Request<Body>| {
            let client = current.read().unwrap_or_else(PoisonError::into_inner).clone();
            async move {
                match client {
                    Some(client) => client.send(request).await.map_err(tower::BoxError::from),
                    None => Err(NotConnected.into()),
                }
            }
        });
        Client::new(service, "default")
    }

    /// Replaces the connection. Requests that are under way finish on the old one.
    pub fn replace(&self, client: Client) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(client);
    }
}
