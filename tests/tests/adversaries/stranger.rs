//! Somebody on the network without a credential.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt as _, stream};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::service::Service;

use crate::{BINARY, PATIENCE, connect, resident};

/// One of the addresses of this machine, each of which counts as a different client.
fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, last)
}

/// Opens connections that have each sent `bytes`. The result includes those that the service has closed.
async fn flood(from: impl Iterator<Item = Ipv4Addr>, to: SocketAddr, bytes: &[u8]) -> Vec<TcpStream> {
    let connections = stream::iter(from).map(async |from| {
        let mut connection = connect(from, to).await?;
        // Bytes that the service does not read wait here and in the kernel.
        let _ = timeout(Duration::from_secs(1), connection.write_all(bytes)).await;
        Some(connection)
    });
    connections.buffer_unordered(500).filter_map(async |connection| connection).collect().await
}

async fn is_served(client: &Client) {
    let answer = timeout(PATIENCE, client.get(&format!("{PREFIX}/labs"))).await.unwrap().unwrap();
    assert_eq!(answer.status, 200);
}

async fn is_alive(service: &Service) {
    let answer = timeout(PATIENCE, service.probes().get("/healthz")).await.unwrap().unwrap();
    assert_eq!(answer.status, 200);
}

/// The beginning of a request head that never ends.
fn unfinished_head(bytes: usize) -> Vec<u8> {
    let mut head = format!("GET {PREFIX}/labs HTTP/1.1\r\nHost: x\r\nX-A: ").into_bytes();
    head.resize(bytes, b'a');
    head
}

#[tokio::test]
async fn unfinished_heads_fill_no_memory_and_keep_nobody_out() {
    let service = Service::start(BINARY).await.unwrap();
    let admin = service.admin().unwrap();
    is_served(&admin).await;
    let before = resident(&service);
    for port in [service.api(), service.health()] {
        let attackers = (0..2000).map(|number| address(u8::try_from(number % 4).unwrap()));
        let connections = flood(attackers, port, &unfinished_head(410_000)).await;
        assert!(!connections.is_empty());
        is_served(&service.admin().unwrap()).await;
        is_alive(&service).await;
        let grown = resident(&service) - before;
        assert!(grown < 100, "{grown} MiB more");
    }
}

#[tokio::test]
async fn requests_without_a_credential_on_many_connections_keep_nobody_out() {
    let service =
        Service::start_with(BINARY, |config| config["http"]["max_connections"] = json!(400)).await.unwrap();
    let request = format!("GET {PREFIX}/labs HTTP/1.1\r\nHost: x\r\n\r\n");
    for port in [service.api(), service.health()] {
        let mut connections = flood((0..600).map(|_| address(1)), port, request.as_bytes()).await;
        is_served(&service.admin().unwrap()).await;
        is_alive(&service).await;
        // Each connection receives one answer at most, and is closed.
        let ends = connections.iter_mut().map(ReadInTime::read_to_end_of_input);
        join_all(ends).await;
    }
}

#[tokio::test]
async fn silent_connections_of_many_addresses_keep_no_caller_out() {
    let service =
        Service::start_with(BINARY, |config| config["http"]["max_connections"] = json!(100)).await.unwrap();
    let admin = service.admin().unwrap();
    is_served(&admin).await;
    for port in [service.api(), service.health()] {
        let attackers = (0..1000).map(|number| address(u8::try_from(number % 100).unwrap()));
        let _connections = flood(attackers, port, b"GET").await;
        is_served(&admin).await;
        is_served(&service.admin().unwrap()).await;
        is_alive(&service).await;
    }
}

/// Anybody may request the description of the API, which is large.
#[tokio::test]
async fn answers_that_nobody_reads_fill_no_memory_and_keep_nobody_out() {
    let service = Service::start(BINARY).await.unwrap();
    let admin = service.admin().unwrap();
    is_served(&admin).await;
    let before = resident(&service);
    let request = format!("GET {PREFIX}/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n");
    let attackers = (0..1000).map(|number| address(u8::try_from(number % 4).unwrap()));
    let connections = flood(attackers, service.api(), request.as_bytes()).await;
    assert!(!connections.is_empty());
    is_served(&admin).await;
    is_served(&service.admin().unwrap()).await;
    let grown = resident(&service) - before;
    assert!(grown < 100, "{grown} MiB more");
}

#[tokio::test]
async fn an_ingress_has_more_connections_than_others() {
    let service = Service::start_with(BINARY, |config| {
        config["http"]["max_connections"] = json!(100);
        config["http"]["proxies"] = json!(["127.0.1.0/24"]);
    })
    .await
    .unwrap();
    let open = async |from: Ipv4Addr| {
        let mut connections = Vec::new();
        for _ in 0..30 {
            connections.push(connect(from, service.api()).await.unwrap());
        }
        let request = format!("GET {PREFIX}/docs HTTP/1.1\r\nHost: x\r\n\r\n");
        let answers = connections.iter_mut().map(async |connection| {
            let _ = connection.write_all(request.as_bytes()).await;
            connection.read_to_end_of_input().await.starts_with(b"HTTP/1.1 200")
        });
        join_all(answers).await.into_iter().filter(|answered| *answered).count()
    };
    assert_eq!(open(address(1)).await, 30);
    let refused = 30 - open(Ipv4Addr::new(127, 0, 2, 1)).await;
    assert!(refused >= 1, "20 at a time are allowed");
    service.logged("http.max_connections_per_address").await.unwrap();
}

#[tokio::test]
async fn a_connection_lives_on_once_a_credential_was_good() {
    let service = Service::start(BINARY).await.unwrap();
    let token = service.admin().unwrap().token().unwrap().to_owned();
    let request = |token: &str| {
        format!("GET {PREFIX}/lab-status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n")
    };
    let mut connection = connect(address(1), service.api()).await.unwrap();
    for token in [&token, "wrong", &token] {
        connection.write_all(request(token).as_bytes()).await.unwrap();
        let answer = connection.read_some().await;
        assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
        assert!(!answer.to_lowercase().contains("connection: close"), "{answer}");
    }
    let mut connection = connect(address(1), service.api()).await.unwrap();
    connection.write_all(request("wrong").as_bytes()).await.unwrap();
    let answer = connection.read_to_end_of_input().await;
    assert!(answer.starts_with(b"HTTP/1.1 401"), "and nothing comes after it");
}

/// Reads with a time limit.
trait ReadInTime {
    async fn read_to_end_of_input(&mut self) -> Vec<u8>;
    async fn read_some(&mut self) -> String;
}

impl ReadInTime for TcpStream {
    async fn read_to_end_of_input(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        // A connection that is reset has ended as well.
        let _ = timeout(PATIENCE, self.read_to_end(&mut all)).await.unwrap();
        all
    }

    async fn read_some(&mut self) -> String {
        let mut some = vec![0; 64 * 1024];
        let read = timeout(PATIENCE, self.read(&mut some)).await.unwrap().unwrap();
        String::from_utf8_lossy(&some[..read]).into_owned()
    }
}
