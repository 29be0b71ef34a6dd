//! Startup and readiness probes: their requests, and the verdict after several answers.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::{self as api, Container};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A probe with the defaults of the API.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Probe {
    /// The path of an HTTP request; `None` if a connection to the port is enough.
    path: Option<String>,
    port: u16,
    timeout: Duration,
    success_threshold: i32,
    failure_threshold: i32,
    pub(crate) initial_delay: Duration,
    pub(crate) period: Duration,
}

impl Probe {
    /// Reads a probe of a container. `None` if it has none, or one whose port does not exist.
    pub(crate) fn from_container(container: &Container, probe: Option<&api::Probe>) -> Option<Self> {
        let probe = probe?;
        let (path, named) = match (&probe.http_get, &probe.tcp_socket) {
            (Some(get), _) if get.scheme.as_deref() == Some("HTTPS") => (None, &get.port),
            (Some(get), _) => (Some(get.path.clone().unwrap_or_else(|| "/".to_owned())), &get.port),
            (None, Some(socket)) => (None, &socket.port),
            (None, None) => return None,
        };
        let seconds = |value: Option<i32>, default: u64, least: u64| {
            Duration::from_secs(value.and_then(|v| u64::try_from(v).ok()).unwrap_or(default).max(least))
        };
        Some(Self {
            path,
            port: port(container, named)?,
            timeout: seconds(probe.timeout_seconds, 1, 1),
            success_threshold: probe.success_threshold.unwrap_or(1),
            failure_threshold: probe.failure_threshold.unwrap_or(3),
            initial_delay: seconds(probe.initial_delay_seconds, 0, 0),
            period: seconds(probe.period_seconds, 10, 1),
        })
    }

    /// Probes once. The error is the text of an `Unhealthy` event after "probe failed: ".
    pub(crate) async fn ask(&self, address: IpAddr) -> Result<(), String> {
        let address = SocketAddr::new(address, self.port);
        match timeout(self.timeout, status_line(address, self.path.as_deref())).await {
            Err(_) => Err(format!("{address}: context deadline exceeded")),
            Ok(Err(error)) => Err(format!("{address}: {error}")),
            Ok(Ok(None)) => Ok(()),
            Ok(Ok(Some(line))) => match status_code(&line) {
                Some(200..=399) => Ok(()),
                Some(code) => Err(format!("HTTP probe failed with statuscode: {code}")),
                None => Err(format!("{address}: malformed HTTP response")),
            },
        }
    }

    pub(crate) fn streak(&self) -> Streak {
        Streak { success: self.success_threshold, failure: self.failure_threshold, count: 0 }
    }
}

/// A counter of equal answers in a row.
#[derive(Debug)]
pub(crate) struct Streak {
    success: i32,
    failure: i32,
    /// The number of good answers in a row; negative for bad ones.
    count: i32,
}

impl Streak {
    /// Counts an answer. Returns whether the container is healthy once there have been enough equal answers.
    pub(crate) fn add(&mut self, healthy: bool) -> Option<bool> {
        self.count = if healthy { self.count.max(0) + 1 } else { self.count.min(0) - 1 };
        match self.count {
            good if good >= self.success => Some(true),
            bad if -bad >= self.failure => Some(false),
            _ => None,
        }
    }
}

/// Connects, and sends an HTTP request if there is a path. The request is written by hand, because only the first line
/// of the answer is needed.
async fn status_line(address: SocketAddr, path: Option<&str>) -> std::io::Result<Option<String>> {
    let mut stream = TcpStream::connect(address).await?;
    let Some(path) = path else { return Ok(None) };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: kube-probe/1.36\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut line = String::new();
    BufReader::new(stream).take(4096).read_line(&mut line).await?;
    Ok(Some(line))
}

fn status_code(line: &str) -> Option<u16> {
    let mut words = line.split_whitespace();
    words.next().filter(|version| version.starts_with("HTTP/"))?;
    words.next()?.parse().ok()
}

/// True if something listens at the address.
pub(crate) async fn port_answers(address: SocketAddr) -> bool {
    matches!(timeout(Duration::from_secs(1), TcpStream::connect(address)).await, Ok(Ok(_)))
}

/// Returns a port by its number or by its name in the container.
fn port(container: &Container, port: &IntOrString) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            container.ports.iter().flatten().find(|p| p.name.as_ref() == Some(name))?.container_port
        }
    };
    u16::try_from(number).ok()
}

/// Returns the port that stands for the readiness of a container without a readiness probe.
pub(crate) fn first_port(container: &Container) -> Option<u16> {
    container.ports.iter().flatten().find_map(|port| u16::try_from(port.container_port).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_status_of_an_answer_decides() {
        for (answer, expected) in [
            ("HTTP/1.1 302 Found\r\n\r\n", ""),
            ("HTTP/1.1 503 x\r\n\r\n", "HTTP probe failed with statuscode: 503"),
            ("nonsense\r\n", "malformed HTTP response"),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let container = json!({
                "name": "n",
                "ports": [{"name": "notebook", "containerPort": listener.local_addr().unwrap().port()}],
                "readinessProbe": {"httpGet": {"port": "notebook", "path": "/api"}, "successThreshold": 2},
            });
            let container: Container = serde_json::from_value(container).unwrap();
            let probe = Probe::from_container(&container, container.readiness_probe.as_ref()).unwrap();
            let serve = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 1024]).await;
                stream.write_all(answer.as_bytes()).await.unwrap();
            };
            let (asked, ()) = tokio::join!(probe.ask([127, 0, 0, 1].into()), serve);
            assert!(asked.err().unwrap_or_default().ends_with(expected), "{answer}");
            let mut streak = probe.streak();
            let verdicts = [true, false, true, true, false, false, false].map(|healthy| streak.add(healthy));
            assert_eq!(verdicts, [None, None, None, Some(true), None, None, Some(false)]);
        }
    }
}
