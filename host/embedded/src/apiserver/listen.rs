//! The server on the network: HTTP/1.1 on a listener, bearer tokens.

use super::access::Access;
use super::call::Caller;
use super::failure::Failure;
use super::{ApiServer, present};
use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long answers under way may take to end after a shutdown.
const LINGER: Duration = Duration::from_secs(5);

impl ApiServer {
    /// Serves clients of the listener until `shutdown`; then watches end, and answers under way are finished.
    ///
    /// # Errors
    /// When the listener is not on loopback, unless `access` allows it, or cannot be used.
    pub async fn serve(
        self,
        listener: TcpListener,
        access: Access,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() && !access.allows_beyond_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{address} is not a loopback address; there is no TLS, use 127.0.0.1 or [::1]"),
            ));
        }
        let access = Arc::new(access);
        let connections = TaskTracker::new();
        loop {
            let stream = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Out of descriptors, or the client went away: others are served still.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        continue;
                    }
                },
            };
            let _ = stream.set_nodelay(true);
            let (server, access, shutdown) = (self.clone(), access.clone(), shutdown.clone());
            connections.spawn(async move {
                let service = {
                    let shutdown = shutdown.clone();
                    service_fn(move |request| {
                        answer(server.clone(), access.clone(), shutdown.clone(), request)
                    })
                };
                let mut http = http1::Builder::new();
                let connection =
                    http.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
                tokio::pin!(connection);
                tokio::select! {
                    _ = connection.as_mut() => return,
                    () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
                }
                let _ = tokio::time::timeout(LINGER, connection).await;
            });
        }
        connections.close();
        connections.wait().await;
        Ok(())
    }
}

async fn answer(
    server: ApiServer,
    access: Arc<Access>,
    shutdown: CancellationToken,
    request: Request<Incoming>,
) -> Result<http::Response<super::Body>, Infallible> {
    // A header that is not text is a wrong token, not a missing one.
    let authorization = request.headers().get(AUTHORIZATION).map(|value| value.to_str().unwrap_or_default());
    let Some(identity) = access.identify(authorization) else {
        return Ok(present::failure(&Failure::unauthorized()));
    };
    let caller = Caller { identity, agent: agent(request.headers()), shutdown };
    Ok(server.answer(request, caller).await)
}

/// The `User-Agent`, `""` when there is none.
pub(super) fn agent(headers: &HeaderMap) -> String {
    headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}
