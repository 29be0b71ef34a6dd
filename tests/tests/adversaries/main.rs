//! Attacks on the service as a process. There is one module for each adversary, in the order of `SECURITY.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hub;
mod stranger;
mod tenant;
mod user;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use wasmspawner_tests::service::Service;

/// The service under test.
const BINARY: &str = env!("CARGO_BIN_EXE_wasmspawner-under-test");

/// The maximum time that a legitimate request may wait while the service is under attack. The value is far below the
/// times after which connections of strangers end, and above the time that a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(8);

/// Connects from one of this machine's addresses, each of which counts as a different client.
async fn connect(from: Ipv4Addr, to: SocketAddr) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind((from, 0).into()).unwrap();
    timeout(PATIENCE, socket.connect(to)).await.ok()?.ok()
}

/// Resident memory of the service in MiB.
fn resident(service: &Service) -> i64 {
    service.usage().unwrap().resident_kib / 1024
}
