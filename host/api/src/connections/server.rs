//! Accepts and serves HTTP connections.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use http::HeaderValue;
use http::header::CONNECTION;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{ServiceExt as _, service_fn};

use super::{Connections, Visitor};

/// The time limit for a caller to send the head of the next request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The time limit for a client to read a part of an answer. Events are sent at least every 15 s, so this also ends
/// event streams that nobody reads.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);
/// The time that requests under way have to finish after the shutdown begins.
const GRACE: Duration = Duration::from_secs(5);
/// With more headers than this, hyper refuses the request before the router can explain it. The documented limit, which
/// is lower, is in `around.rs`.
const HEADERS_COUNT: usize = 512;
/// The size of the buffer for a request's head, in bytes. It is large enough for the documented limits of path and
/// headers.
const HEAD_BUFFER: usize = 64 * 1024;
/// The pause after an error that would repeat at once, such as running out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves connections until `shutdown`. After that, requests under way have at most 5 s to finish.
pub async fn serve(
    listener: TcpListener,
    connections: Connections,
    router: Router,
    shutdown: CancellationToken,
) {
    let open = TaskTracker::new();
    loop {
        let accepted = shutdown.run_until_cancelled(async {
            // The semaphores are never closed, so there will always be a place eventually.
            let place = connections.place().await;
            (place, listener.accept().await)
        });
        let Some((Some(place), accepted)) = accepted.await else { break };
        match accepted {
            Ok((stream, peer)) => {
                let Some(admitted) = connections.admit(place, peer.ip()) else { continue };
                let (connections, router, shutdown) = (connections.clone(), router.clone(), shutdown.clone());
                open.spawn(async move {
                    let Some(visitor) = shutdown.run_until_cancelled(connections.visitor(admitted)).await.flatten()
                    else {
                        return;
                    };
                    let serving = connection(stream, peer, connections.tls, router, &visitor, shutdown);
                    tokio::select! {
                        () = serving => {}
                        () = visitor.time_is_over() => tracing::debug!(%peer, "the connection is closed: it sent no valid credential in time"),
                    }
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
    visitor: &Arc<Visitor>,
    shutdown: CancellationToken,
) {
    // Events are small and must arrive at once, so Nagle's algorithm is switched off.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return requests(stream, peer, router, visitor, shutdown).await };
    match shutdown.clone().run_until_cancelled(tls.accept(stream)).await {
        Some(Ok(stream)) => requests(stream, peer, router, visitor, shutdown).await,
        Some(Err(error)) => tracing::debug!(%error, %peer, "no TLS connection"),
        None => {}
    }
}

/// Answers the requests of one connection: one request of a visitor, or any number of a caller.
async fn requests<S>(
    stream: S,
    peer: SocketAddr,
    router: Router,
    visitor: &Arc<Visitor>,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
        visitor.request_begins();
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(Arc::clone(visitor));
        let answer = router.clone().oneshot(request.map(axum::body::Body::new));
        async move {
            let mut answer = answer.await.unwrap_or_else(|never| match never {});
            if !visitor.answer_begins() {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(HEADERS_COUNT)
        .max_buf_size(HEAD_BUFFER)
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
        let visitor = Visitor::from_peer(&Connections::to_health(), peer.ip()).await;
        let serving = tokio::spawn(async move {
            requests(server, peer, router, &visitor, CancellationToken::new()).await;
        });
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        serving.await.unwrap();
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert!(received.len() <= 4096, "only what was sent before is left");
    }
}
