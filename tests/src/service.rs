//! The service as a separate process, on the one-machine cluster with simulated pods.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use wasmspawner_core::names::Username;
use wasmspawner_core::users::access::Scope;
use wasmspawner_core::users::token::{TokenDigest, TokenEntry};

use crate::api::Client;
use crate::compiled_policies::CompiledPolicies;
use crate::guests;

/// Time limit for the service to become ready, which includes the compilation of its policies.
const START: Duration = Duration::from_mins(2);

/// A running service; it ends when this value is dropped.
pub struct Service {
    process: Option<Child>,
    folder: TempDir,
    binary: PathBuf,
    address: Ipv4Addr,
    fault: Option<String>,
    /// The name of its pod, which is its uid, too, and the pod's address.
    pod: Option<(String, Ipv4Addr)>,
}

/// CPU time and memory of a process.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// CPU time, in user and system mode.
    pub cpu: Duration,
    /// Resident memory now, in KiB.
    pub resident_kib: i64,
    /// Largest resident memory so far, in KiB.
    pub peak_kib: i64,
}

impl Service {
    /// Starts `binary` with the configuration of most tests: the policy `stagehand`, and uid 1000 for users without
    /// numbers.
    pub async fn start(binary: &str) -> anyhow::Result<Self> {
        Self::start_with(binary, |_| {}).await
    }

    /// Like [`Self::start`], with changes to the configuration.
    pub async fn start_with(binary: &str, change: impl FnOnce(&mut Value)) -> anyhow::Result<Self> {
        let mut service = Self::prepare(binary, change)?;
        service.run().await?;
        Ok(service)
    }

    /// Writes the configuration without starting the service.
    pub fn prepare(binary: &str, change: impl FnOnce(&mut Value)) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let service = Self {
            process: None,
            folder,
            binary: binary.into(),
            address: own_address(),
            fault: None,
            pod: None,
        };
        service.reconfigure(change)?;
        append(&service.tokens_file(), "# tokens of this test\n")?;
        Ok(service)
    }

    /// Writes another configuration, for the next start.
    pub fn reconfigure(&self, change: impl FnOnce(&mut Value)) -> anyhow::Result<()> {
        let mut config = self.config();
        change(&mut config);
        be_patient(&mut config);
        Ok(std::fs::write(self.config_file(), serde_json::to_vec_pretty(&config)?)?)
    }

    /// Lets the next process fail at a named point, such as `abort before delete Pod`, but not the process after it.
    pub fn meets(&mut self, fault: &str) {
        self.fault = Some(fault.to_owned());
    }

    /// Tells the service that it runs in this pod.
    pub fn is_in_pod(&mut self, name: &str, address: Ipv4Addr) {
        self.pod = Some((name.to_owned(), address));
    }

    /// The name of its pod.
    pub fn pod(&self) -> Option<String> {
        self.pod.as_ref().map(|(name, _)| name.clone())
    }

    /// Waits until the process has ended by itself.
    pub async fn death(&mut self) -> anyhow::Result<()> {
        let process = self.process.as_mut().context("it does not run")?;
        let mut again = tokio::time::interval(Duration::from_millis(20));
        let died = async {
            while process.try_wait()?.is_none() {
                again.tick().await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(START, died).await.context("it lives on")??;
        self.process = None;
        Ok(())
    }

    /// Starts the service, and waits until it is ready.
    pub async fn run(&mut self) -> anyhow::Result<()> {
        self.begin()?;
        self.until_ready().await?;
        Ok(CompiledPolicies::from_program(&self.binary).keep(&self.folder().join("state"))?)
    }

    /// Starts the service, and does not wait until it is ready.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        CompiledPolicies::from_program(&self.binary).lend(&self.folder().join("state"))?;
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_file())?;
        let mut command = self.command();
        if let Some(fault) = self.fault.take() {
            command.env("WASMSPAWNER_FAULT", fault);
        }
        let process =
            command.stdout(Stdio::null()).stderr(log).spawn().context("the service does not start")?;
        self.process = Some(process);
        Ok(())
    }

    /// Waits until the service is ready.
    pub async fn until_ready(&mut self) -> anyhow::Result<()> {
        let ready = tokio::time::timeout(START, self.ready()).await;
        ready
            .map_err(anyhow::Error::from)
            .flatten()
            .with_context(|| format!("not ready; its log:\n{}", self.log()))
    }

    /// Runs the service until it ends by itself, for configurations that it refuses.
    pub fn run_to_end(&self) -> anyhow::Result<Output> {
        let mut process = self.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut stderr = process.stderr.take().context("no stderr")?;
        // The pipe is closed when the process ends.
        let mut text = Vec::new();
        stderr.read_to_end(&mut text)?;
        Ok(Output { status: process.wait()?, stdout: Vec::new(), stderr: text })
    }

    /// Kills the service without warning, and starts it again. Everything that its cluster has shown until now is there
    /// again.
    pub async fn crash_and_restart(&mut self) -> anyhow::Result<()> {
        self.sync().await?;
        self.kill();
        self.run().await
    }

    /// Waits until everything that the one-machine cluster shows is on disk. The cluster writes in order, so the answer
    /// to one more write comes after that.
    pub async fn sync(&self) -> anyhow::Result<()> {
        static COUNT: AtomicU8 = AtomicU8::new(0);
        if self.process.is_none() || !self.kubeconfig().exists() {
            return Ok(());
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed).to_string();
        let namespaces: Api<Namespace> = Api::all(self.cluster().await?);
        let written = json!({ "metadata": { "annotations": { "tests/written-last": number } } });
        namespaces.patch("default", &PatchParams::default(), &Patch::Merge(written)).await?;
        Ok(())
    }

    /// CPU time and memory of the process so far.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        let id = self.process.as_ref().context("it does not run")?.id();
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The second field is the name in parentheses; user and system time are the 14th and 15th, in hundredths of a
        // second.
        let fields: Vec<&str> = stat.rsplit_once(')').context("no stat")?.1.split_whitespace().collect();
        let ticks =
            |field: usize| -> anyhow::Result<u64> { Ok(fields.get(field).context("no field")?.parse()?) };
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let kib = |key: &str| -> anyhow::Result<i64> {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .with_context(|| format!("no {key}"))?;
            Ok(line.trim().trim_end_matches(" kB").parse()?)
        };
        Ok(Usage {
            cpu: Duration::from_millis(10 * (ticks(11)? + ticks(12)?)),
            resident_kib: kib("VmRSS:")?,
            peak_kib: kib("VmHWM:")?,
        })
    }

    /// Asks the service to end with SIGTERM, as a cluster does.
    pub fn ask_to_end(&self) -> anyhow::Result<()> {
        self.signal("-TERM")
    }

    /// Stops the process as SIGSTOP does: it knows nothing of the time that passes until it is continued.
    pub fn freeze(&self) -> anyhow::Result<()> {
        self.signal("-STOP")
    }

    /// Continues a process that was stopped.
    pub fn thaw(&self) -> anyhow::Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let process = self.process.as_ref().context("it does not run")?;
        Command::new("kill").args([signal, &process.id().to_string()]).status()?;
        Ok(())
    }

    /// True if the process has ended by itself, or was never begun.
    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        let Some(process) = &mut self.process else { return Ok(true) };
        Ok(process.try_wait()?.is_some())
    }

    /// Asks the service to end, and waits until it has ended.
    pub fn end(&mut self) -> anyhow::Result<std::process::ExitStatus> {
        self.ask_to_end()?;
        let mut process = self.process.take().context("it does not run")?;
        Ok(process.wait()?)
    }

    /// A client for a user, with the scope of ordinary users.
    pub fn user(&self, name: &str) -> anyhow::Result<Client> {
        self.client(name, &[Scope::ExecNotebook])
    }

    /// A client for the Hub.
    pub fn hub(&self) -> anyhow::Result<Client> {
        self.client("hub", &[Scope::AdminJupyterhub])
    }

    /// A client for an administrator.
    pub fn admin(&self) -> anyhow::Result<Client> {
        self.client("admin", &[Scope::AdminNotebook])
    }

    /// A client for any user, with these scopes.
    pub fn client(&self, name: &str, scopes: &[Scope]) -> anyhow::Result<Client> {
        let token = format!("{name}-{scopes:?}").replace([' ', ',', '[', ']'], "");
        let entry = TokenEntry {
            sha256: TokenDigest::from_token(&token),
            user: Username::parse(name)?,
            scopes: scopes.iter().copied().collect(),
            expires: None,
            uid: None,
            gid: None,
            groups: Vec::new(),
        };
        append(&self.tokens_file(), &entry.to_line()?)?;
        Ok(self.stranger().with_token(&token))
    }

    /// A client without a token.
    pub fn stranger(&self) -> Client {
        Client::new(self.api())
    }

    /// A client of the address for health and metrics.
    pub fn probes(&self) -> Client {
        Client::new(self.health())
    }

    /// A client of the service's cluster, over the network.
    pub async fn cluster(&self) -> anyhow::Result<kube::Client> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig())?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(kube::Client::try_from(config)?)
    }

    /// The address of the API.
    pub fn api(&self) -> SocketAddr {
        (self.address, 8090).into()
    }

    /// The address for health and metrics.
    pub fn health(&self) -> SocketAddr {
        (self.address, 8091).into()
    }

    /// The id of the process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// The folder with the service's configuration and state.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.folder().join("config.yaml")
    }

    /// The whole log of the service.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Waits until `text` is in the log. The service writes its log beside its work, so that a line can come
    /// after the answer to the request that caused it.
    pub async fn logged(&self, text: &str) -> anyhow::Result<()> {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        let waiting = async {
            while !self.log().contains(text) {
                again.tick().await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), waiting)
            .await
            .with_context(|| format!("{text:?} was not logged; the log:\n{}", self.log()))
    }

    fn log_file(&self) -> PathBuf {
        self.folder().join("log")
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder().join("state/kubeconfig")
    }

    fn tokens_file(&self) -> PathBuf {
        self.folder().join("tokens.yaml")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("serve").arg("--config").arg(self.config_file()).env_remove("RUST_LOG");
        // `make run` sets this, too, and `deploy/README.md` recommends it.
        command.env("MALLOC_ARENA_MAX", "1");
        if let Some((name, address)) = &self.pod {
            command.env("WASMSPAWNER_POD_NAME", name).env("WASMSPAWNER_POD_UID", name);
            command.env("WASMSPAWNER_POD_IPS", address.to_string()).env("WASMSPAWNER_NODE_NAME", "node");
        }
        command
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let probes = self.probes();
        let mut again = tokio::time::interval(Duration::from_millis(20));
        loop {
            again.tick().await;
            if let Some(status) = self.process.as_mut().map(Child::try_wait).transpose()?.flatten() {
                bail!("it ended with {status}");
            }
            if probes.get("/readyz").await.is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
        }
    }

    /// The configuration of most tests. JSON is YAML.
    fn config(&self) -> Value {
        json!({
            "http": { "listen": self.api(), "health_listen": self.health() },
            "auth": {
                "modes": ["static"],
                "static": { "tokens_file": self.tokens_file() },
                "identities": { "default": { "uid": 1000, "gid": 1000, "groups": [{ "name": "users", "id": 1000 }] } },
            },
            "embedded": {
                "listen": SocketAddr::from((self.address, 8092)),
                "runtime": "simulated",
                "simulated": { "ready": "100ms" },
            },
            "policies": [{
                "name": "stagehand",
                "path": guests::component("guest-stagehand"),
                "grants": { "metadata": ["simulated.kubelet/"] },
            }],
            "state_dir": self.folder().join("state"),
            "telemetry": { "format": "text", "filter": "info,wasmspawner=debug" },
        })
    }

    /// Kills the service without warning.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "--- log of the service ---\n{}", self.log());
        }
    }
}

/// Gives policies the time that a busy machine needs: a call may wait for the CPU ten times as long as it may compute.
fn be_patient(config: &mut Value) {
    let policies = config.get_mut("policies").and_then(Value::as_array_mut).into_iter().flatten();
    for policy in policies.filter_map(Value::as_object_mut) {
        policy.entry("limits").or_insert_with(|| json!({ "deadline_ms": 1000 }));
    }
}

/// An address for this service alone. Linux answers on all of 127/8, so parallel tests never need the same port.
pub fn own_address() -> Ipv4Addr {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 128 | (high & 0x7f), low, COUNT.fetch_add(1, Ordering::Relaxed))
}

fn append(file: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(file)?;
    Ok(file.write_all(text.as_bytes())?)
}
