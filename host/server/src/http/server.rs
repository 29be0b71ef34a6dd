//! Accepts and serves HTTP connections.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{ServiceExt as _, service_fn};

use super::tls::Tls;

/// How long a client may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take to agree on TLS.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to read something of an answer. Events are sent every 15 s at least, so this also ends
/// event streams that nobody reads.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long requests under way may still take after the service was told to stop.
const GRACE: Duration = Duration::from_secs(5);
/// With more headers than this, hyper refuses the request before the router can explain it. The documented limit, which
/// is lower, is in `around.rs`.
const HEADERS_COUNT: usize = 512;
/// The pause after an error that would repeat at once, such as running out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How connections are accepted.
#[derive(Clone, Default)]
pub struct Connections {
    /// With TLS, where there is a certificate.
    tls: Option<TlsAcceptor>,
    /// The most at any one time.
    limit: Option<Arc<Semaphore>>,
}

impl Connections {
    /// At most `limit` connections at any one time, with TLS where there is a certificate.
    pub fn new(tls: Option<&Tls>, limit: usize) -> Result<Self, rustls::Error> {
        let tls = tls.map(Tls::acceptor).transpose()?;
        Ok(Self { tls, limit: Some(Arc::new(Semaphore::new(limit))) })
    }
}

/// Serves until `shutdown`. After that, requests under way have at most 5 s to finish.
pub async fn serve(
    listener: TcpListener,
    connections: Connections,
    router: Router,
    shutdown: CancellationToken,
) {
    let open = TaskTracker::new();
    loop {
        let accepted = shutdown.run_until_cancelled(async {
            let slot = match &connections.limit {
                Some(limit) => Arc::clone(limit).acquire_owned().await.ok(),
                None => None,
            };
            (slot, listener.accept().await)
        });
        let Some((slot, accepted)) = accepted.await else { break };
        match accepted {
            Ok((stream, peer)) => {
                let (tls, router, shutdown) = (connections.tls.clone(), router.clone(), shutdown.clone());
                open.spawn(async move {
                    connection(stream, peer, tls, router, shutdown).await;
                    drop(slot);
                });
            }
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    open.close();
    let _ = tokio::time::timeout(GRACE, open.wait()).await;
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    router: Router,
    shutdown: CancellationToken,
) {
    // Events are small and must arrive at once, so Nagle's algorithm is switched off.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return requests(stream, peer, router, shutdown).await };
    let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream));
    match shutdown.clone().run_until_cancelled(handshake).await {
        Some(Ok(Ok(stream))) => requests(stream, peer, router, shutdown).await,
        Some(Ok(Err(error))) => tracing::debug!(%error, %peer, "no TLS connection"),
        Some(Err(_)) => tracing::debug!(%peer, "no TLS connection in time"),
        None => {}
    }
}

/// Answers the requests of one connection.
async fn requests<S>(stream: S, peer: SocketAddr, router: Router, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = router.clone().oneshot(request.map(axum::body::Body::new));
        async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(HEADERS_COUNT)
        .serve_connection(
            TokioIo::new(Box::pin(with_write_timeout(stream))),
            TowerToHyperService::new(service),
        );
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "a connection ended early");
    }
}

fn with_write_timeout<S: AsyncRead + AsyncWrite>(stream: S) -> TimeoutStream<S> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    stream
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use bytes::Bytes;
    use futures::stream;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_its_answer_loses_the_connection() {
        let endless = || async {
            Body::from_stream(stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 1024]))))
        };
        let router = Router::new().route("/", get(endless));
        let (mut client, server) = tokio::io::duplex(4096);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let serving = tokio::spawn(requests(server, peer, router, CancellationToken::new()));
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        serving.await.unwrap();
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert!(received.len() <= 4096, "only what was sent before is left");
    }
}
