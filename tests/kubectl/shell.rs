//! kubectl, pointed at a server of the test's own.

use serde_json::Value;
use std::io::Write;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio_util::sync::{CancellationToken, DropGuard};
use wasmspawner_embedded::apiserver::{
    Access, ApiServer, Certificate, Identity, Options, PodLogs, kubeconfig,
};

const BOUND: Duration = Duration::from_mins(1);

/// A server on loopback and a kubeconfig for it.
pub(crate) struct Shell {
    home: TempDir,
    _shutdown: DropGuard,
}

/// What a command wrote.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) success: bool,
}

impl Said {
    /// The columns of the table's rows, its head first.
    pub(crate) fn rows(&self) -> Vec<Vec<&str>> {
        self.out.lines().map(|line| line.split_whitespace().collect()).collect()
    }
}

impl Shell {
    /// A server with these logs. None when there is no kubectl, which is told.
    pub(crate) async fn open(logs: Option<Arc<dyn PodLogs>>) -> Option<Self> {
        if Command::new("kubectl").arg("version").arg("--client").output().await.is_err() {
            println!("skipped: there is no kubectl");
            return None;
        }
        let server = ApiServer::open(Options::default()).unwrap();
        if let Some(logs) = logs {
            server.set_pod_logs(logs);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let certificate = Certificate::for_loopback(address.ip()).unwrap();
        let home = tempfile::tempdir().unwrap();
        let config = kubeconfig(address, &certificate, "s3cret");
        std::fs::write(home.path().join("config"), config).unwrap();
        let shutdown = CancellationToken::new();
        let access = Access::new().token("s3cret", Identity::new("alice"));
        tokio::spawn(server.serve_tls(listener, certificate, access, shutdown.clone()));
        Some(Self { home, _shutdown: shutdown.drop_guard() })
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("kubectl");
        command
            .args(line.split_whitespace())
            .env("KUBECONFIG", self.home.path().join("config"))
            .env("HOME", self.home.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs kubectl with these arguments.
    pub(crate) async fn run(&self, line: &str) -> Said {
        let output = tokio::time::timeout(BOUND, self.command(line).output()).await.unwrap().unwrap();
        said(output)
    }

    /// Runs kubectl, which has to succeed, and returns what it wrote.
    pub(crate) async fn ok(&self, line: &str) -> Said {
        let said = self.run(line).await;
        assert!(said.success, "kubectl {line}: {said:?}");
        said
    }

    /// Runs kubectl with a file of this content as `-f`.
    pub(crate) async fn with_file(&self, line: &str, content: &Value) -> Said {
        let mut file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
        file.write_all(content.to_string().as_bytes()).unwrap();
        self.ok(&format!("{line} -f {}", file.path().display())).await
    }

    /// Starts kubectl; its output is read while it runs.
    pub(crate) fn start(&self, line: &str) -> Child {
        self.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

fn said(output: Output) -> Said {
    Said {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        success: output.status.success(),
    }
}
