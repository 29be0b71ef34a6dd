//! kubectl, pointed at a cluster.

use serde_json::{Value, json};
use std::env;
use std::fs::File;
use std::io::Write;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio_util::sync::{CancellationToken, DropGuard};
use wasmspawner_embedded::apiserver::{Access, ApiServer, Certificate, Options, PodLogs, kubeconfig};

const BOUND: Duration = Duration::from_mins(1);

/// Shells so far: each has a namespace of its own, also in a cluster that they share.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// kubectl with a kubeconfig and a namespace of its own.
pub(crate) struct Shell {
    pub(crate) namespace: String,
    home: TempDir,
    server: Option<DropGuard>,
    /// Keeps other tests out of a real cluster: some of them bring a node, which runs all pods.
    _lock: Option<File>,
}

/// The output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) success: bool,
}

impl CommandOutput {
    /// The columns of the table's rows, its head first.
    pub(crate) fn rows(&self) -> Vec<Vec<&str>> {
        self.out.lines().map(|line| line.split_whitespace().collect()).collect()
    }

    /// True if a row begins with these columns.
    pub(crate) fn has_row(&self, begin: &[&str]) -> bool {
        self.rows().iter().any(|row| row.starts_with(begin))
    }
}

impl Shell {
    /// On a server of its own on loopback, with these logs. Without kubectl, prints `skipped` and returns None.
    pub(crate) async fn embedded(logs: Option<Arc<dyn PodLogs>>) -> Option<Self> {
        let server = ApiServer::open(Options::default()).unwrap();
        if let Some(logs) = logs {
            server.set_pod_logs(logs);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let certificate = Certificate::for_loopback(address.ip()).unwrap();
        let config = kubeconfig(address, &certificate, "s3cret");
        let shutdown = CancellationToken::new();
        let access = Access::token("s3cret");
        tokio::spawn(server.serve(listener, Some(certificate), access, shutdown.clone()));
        Self::open(config.as_bytes(), Some(shutdown.drop_guard()), None).await
    }

    /// On the cluster that `TEST_KUBECONFIG` names. Without it or without kubectl, prints `skipped` and returns
    /// None.
    pub(crate) async fn real() -> Option<Self> {
        let Some(file) = env::var_os("TEST_KUBECONFIG") else {
            println!("skipped: TEST_KUBECONFIG is not set; `make test` starts a control plane");
            return None;
        };
        let lock = File::open(&file).unwrap();
        let lock = tokio::task::spawn_blocking(|| lock.lock().map(|()| lock)).await.unwrap().unwrap();
        let view = Command::new("kubectl")
            .args(["config", "view", "--raw", "--flatten", "--minify"])
            .env("KUBECONFIG", file)
            .output();
        let config = view.await.map(|output| output.stdout).unwrap_or_default();
        Self::open(&config, None, Some(lock)).await
    }

    async fn open(config: &[u8], server: Option<DropGuard>, lock: Option<File>) -> Option<Self> {
        if Command::new("kubectl").arg("version").arg("--client").output().await.is_err() {
            println!("skipped: there is no kubectl");
            return None;
        }
        let namespace = format!("kubectl-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config"), config).unwrap();
        let shell = Self { namespace, home, server, _lock: lock };
        shell.new_namespace(&shell.namespace).await;
        shell.ok(&format!("config set-context --current --namespace={}", shell.namespace)).await;
        Some(shell)
    }

    /// Makes a namespace in which pods are admitted: a Kubernetes wants an account for them.
    pub(crate) async fn new_namespace(&self, name: &str) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.with_file("create", &namespace).await;
        if self.server.is_none() {
            self.ok(&format!("wait --for=create serviceaccount/default -n {name} --timeout=60s")).await;
        }
    }

    /// Deletes its namespace.
    pub(crate) async fn leave(self) {
        self.ok(&format!("delete namespace {} --wait=false", self.namespace)).await;
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
    pub(crate) async fn run(&self, line: &str) -> CommandOutput {
        let output = tokio::time::timeout(BOUND, self.command(line).output()).await.unwrap().unwrap();
        command_output(output)
    }

    /// Runs kubectl, which has to succeed, and returns what it wrote.
    pub(crate) async fn ok(&self, line: &str) -> CommandOutput {
        let output = self.run(line).await;
        assert!(output.success, "kubectl {line}: {output:?}");
        output
    }

    /// Runs kubectl with a file of this content as `-f`.
    pub(crate) async fn with_file(&self, line: &str, content: &Value) -> CommandOutput {
        let mut file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
        file.write_all(content.to_string().as_bytes()).unwrap();
        self.ok(&format!("{line} -f {}", file.path().display())).await
    }

    /// Starts kubectl; its output is read while it runs.
    pub(crate) fn start(&self, line: &str) -> Child {
        self.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

fn command_output(output: Output) -> CommandOutput {
    CommandOutput {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        success: output.status.success(),
    }
}
