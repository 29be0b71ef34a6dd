//! Asks once.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, process::Stdio, time::Duration};

use k8s_openapi::api::core::v1::HTTPGetAction;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::Command,
    time::timeout,
};

use super::{Action, Schedule};

/// The process that is asked.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) pod_ip: std::net::IpAddr,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) working_dir: PathBuf,
}

/// One answer; an error is what an `Unhealthy` event says after "probe failed: ".
pub(crate) async fn check(schedule: &Schedule, target: &Target) -> Result<(), String> {
    let asked = async {
        match &schedule.action {
            Action::Http { request, port } => http(request, SocketAddr::new(target.pod_ip, *port)).await,
            Action::Tcp { port } => connect(SocketAddr::new(target.pod_ip, *port)).await.map(drop),
            Action::Exec(action) => exec(action.command.as_deref().unwrap_or_default(), target).await,
            Action::Unknown => Ok(()),
        }
    };
    match timeout(schedule.timeout, asked).await {
        Ok(answer) => answer,
        Err(_) => {
            Err(format!("no answer within {} s: context deadline exceeded", schedule.timeout.as_secs()))
        }
    }
}

/// Whether something listens there.
pub(crate) async fn port_answers(address: SocketAddr) -> bool {
    matches!(timeout(Duration::from_secs(1), TcpStream::connect(address)).await, Ok(Ok(_)))
}

async fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    TcpStream::connect(address).await.map_err(|error| {
        let reason = match error.kind() {
            std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
            _ => error.to_string(),
        };
        format!("dial tcp {address}: {reason}")
    })
}

/// A request by hand: nothing but the status line is of interest. TLS is not spoken: over HTTPS only the connection
/// counts.
async fn http(request: &HTTPGetAction, address: SocketAddr) -> Result<(), String> {
    let path = request.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
    let url = format!("http://{address}{path}");
    let wrap = |reason: String| format!("Get {url:?}: {reason}");
    let mut stream = connect(address).await.map_err(wrap)?;
    if request.scheme.as_deref() == Some("HTTPS") {
        return Ok(());
    }
    let text = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: kube-probe/1.36\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(text.as_bytes()).await.map_err(|error| wrap(error.to_string()))?;
    let mut line = Vec::new();
    let read = BufReader::new(stream).take(4096).read_until(b'\n', &mut line).await;
    read.map_err(|error| wrap(error.to_string()))?;
    match status_code(&line) {
        Some(200..=399) => Ok(()),
        Some(code) => Err(format!("HTTP probe failed with statuscode: {code}")),
        None => Err(wrap("malformed HTTP response".to_owned())),
    }
}

fn status_code(line: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    words.next().filter(|version| version.starts_with("HTTP/"))?;
    words.next()?.parse().ok()
}

/// Runs a command beside the container, with its environment.
async fn exec(command: &[String], target: &Target) -> Result<(), String> {
    let [program, args @ ..] = command else { return Ok(()) };
    let output = Command::new(program)
        .args(args)
        .env_clear()
        .envs(&target.env)
        .current_dir(&target.working_dir)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| format!("exec {program:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(String::from_utf8_lossy(&text).chars().take(512).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    /// Answers every connection with these bytes, then closes.
    async fn server(answer: &'static str) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut seen = [0; 1024];
                let _ = stream.read(&mut seen).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        port
    }

    async fn ask(probe: serde_json::Value) -> Result<(), String> {
        let container = serde_json::from_value(json!({"name": "n"})).unwrap();
        let schedule = Schedule::of(&container, &serde_json::from_value(probe).unwrap());
        let env = [("PATH".to_owned(), std::env::var("PATH").unwrap())].into();
        check(&schedule, &Target { pod_ip: [127, 0, 0, 1].into(), env, working_dir: "/".into() }).await
    }

    #[tokio::test]
    async fn http_answers() {
        for (answer, expect) in [
            ("HTTP/1.1 200 OK\r\n\r\n", Ok(())),
            ("HTTP/1.1 302 Found\r\n\r\n", Ok(())),
            ("HTTP/1.1 503 x\r\n\r\n", Err("HTTP probe failed with statuscode: 503")),
        ] {
            let port = server(answer).await;
            let got = ask(json!({"httpGet": {"port": port, "path": "/api"}})).await;
            assert_eq!(got, expect.map_err(str::to_owned), "{answer}");
        }
        let port = server("nonsense\r\n").await;
        assert!(
            ask(json!({"httpGet": {"port": port}})).await.unwrap_err().contains("malformed HTTP response")
        );
    }

    #[tokio::test]
    async fn a_closed_port_is_refused() {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let expect = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
        assert_eq!(ask(json!({"tcpSocket": {"port": port}})).await, Err(expect.clone()));
        let http = ask(json!({"httpGet": {"port": port, "path": "/x"}})).await;
        assert_eq!(http, Err(format!("Get \"http://127.0.0.1:{port}/x\": {expect}")));
        assert!(!port_answers(SocketAddr::from(([127, 0, 0, 1], port))).await);
    }

    #[tokio::test]
    async fn commands() {
        assert_eq!(ask(json!({"exec": {"command": ["true"]}})).await, Ok(()));
        let failing = ask(json!({"exec": {"command": ["sh", "-c", "echo no >&2; exit 1"]}})).await;
        assert_eq!(failing, Err("no\n".to_owned()));
        let slow = ask(json!({"exec": {"command": ["sleep", "60"]}, "timeoutSeconds": 1})).await;
        assert!(slow.unwrap_err().contains("within 1 s"));
    }
}
