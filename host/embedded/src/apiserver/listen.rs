//! The server on the network: HTTP/1.1 on a listener, with or without TLS, and bearer tokens.

use super::ApiServer;
use super::certificate::Certificate;
use super::failure::Failure;
use super::present::{self, Body};
use http::header::AUTHORIZATION;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sha2::{Digest, Sha256};
use std::convert::Infallible;
use std::io;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(20);
/// The time limit for answers under way after a shutdown.
const LINGER: Duration = Duration::from_secs(5);

/// The time limit for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

impl ApiServer {
    /// Serves clients of the listener until `shutdown`. After that, watches end, and answers under way are finished.
    ///
    /// Without a certificate there is no TLS, and kubectl sends no token.
    ///
    /// # Errors Fails if the listener is not on loopback or cannot be used.
    pub async fn serve(
        self,
        listener: TcpListener,
        tls: Option<Certificate>,
        access: Access,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        Listener { server: self, access, tls, shutdown }.accept(listener).await
    }
}

/// The bearer token that gives access. There is no authorization: its holder may do everything.
#[derive(Clone)]
pub struct Access {
    /// The token's digest, so that neither a dump of memory nor the time of a comparison reveals the token.
    digest: [u8; 32],
}

impl Access {
    /// Gives access to clients that send `token`.
    pub fn token(token: &str) -> Self {
        Self { digest: Sha256::digest(token.as_bytes()).into() }
    }

    /// True if the value of an `Authorization` header gives its sender access.
    fn admits(&self, authorization: Option<&str>) -> bool {
        let Some((scheme, token)) = authorization.and_then(|header| header.split_once(' ')) else {
            return false;
        };
        let digest: [u8; 32] = Sha256::digest(token.trim().as_bytes()).into();
        scheme.eq_ignore_ascii_case("bearer") && bool::from(self.digest.ct_eq(&digest))
    }
}

/// The state that all connections share.
#[derive(Clone)]
struct Listener {
    server: ApiServer,
    access: Access,
    tls: Option<Certificate>,
    shutdown: CancellationToken,
}

impl Listener {
    async fn accept(self, listener: TcpListener) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{address} is not a loopback address; use 127.0.0.1 or [::1]"),
            ));
        }
        let connections = TaskTracker::new();
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(self.clone().handshake(stream));
                    }
                    Err(error) => {
                        // The process is out of descriptors, or the client has disconnected. Other clients are still
                        // served.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
            }
        }
        connections.close();
        connections.wait().await;
        Ok(())
    }

    async fn handshake(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Some(tls) = self.tls.clone() else { return self.answer_all(stream).await };
        match tokio::time::timeout(HANDSHAKE, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => self.answer_all(stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "a client does not agree on TLS"),
            Err(_) => tracing::debug!("a client does not begin with TLS"),
        }
    }

    async fn answer_all(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let shutdown = self.shutdown.clone();
        let service = service_fn(move |request| answer(self.clone(), request));
        let mut http = http1::Builder::new();
        let connection = http.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = tokio::time::timeout(LINGER, connection).await;
    }
}

async fn answer(listener: Listener, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if !listener.access.admits(authorization) {
        return Ok(present::failure(&Failure::unauthorized()));
    }
    Ok(listener.server.answer(request, listener.shutdown).await)
}
