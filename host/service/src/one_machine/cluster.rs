//! The one-machine cluster in this process: its API server, its kubelet and the kubeconfig that leads there.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::{
    Config, EmbeddedConfig, ImageMapping, PodCommand, RuntimeKind, SimulatedStages,
};
use wasmspawner_core::values::digest::Digest;
use wasmspawner_embedded::apiserver::{Access, ApiServer, Certificate, Options, kubeconfig};
use wasmspawner_embedded::kubelet::{
    self, AddressRange, ImageCommand, Kubelet, KubeletOptions, OnShutdown, ProcessOptions, Runtime,
    SimulatedOptions,
};

use super::write_private;
use wasmspawner_kubernetes::random_token::random_token;

/// The one-machine cluster, opened but not running yet.
pub(crate) struct OneMachine {
    server: ApiServer,
    kubelet: Kubelet,
    listener: TcpListener,
    certificate: Certificate,
    access: Access,
}

impl OneMachine {
    /// Opens the cluster with the objects it had when it last ran, and writes its kubeconfig.
    pub(crate) async fn open(embedded: &EmbeddedConfig, config: &Config) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(embedded.listen).await.with_context(|| {
            format!(
                "embedded.listen: cannot listen on {}; choose another port or stop the program that uses it",
                embedded.listen
            )
        })?;
        let state_dir = config.state_dir.as_deref();
        let options = state_dir.map_or_else(Options::default, |dir| Options::persistent(dir.join("cluster")));
        let server = ApiServer::open(options).context("the one-machine cluster cannot be opened")?;
        make_namespace(&server.client(), config.kubernetes.namespace.as_str()).await?;
        if let Some(single) = config.lab_namespaces.single() {
            make_namespace(&server.client(), single.as_str()).await?;
        }
        let runtime = runtime(embedded, state_dir)?;
        let mut options = KubeletOptions::new("this-machine", runtime);
        options.pod_addresses = state_dir.map_or_else(AddressRange::default, pod_addresses);
        let kubelet = Kubelet::new(server.client(), options)?;
        server.set_pod_logs(kubelet.logs());
        let address = listener.local_addr()?;
        let certificate = Certificate::for_loopback(address.ip())?;
        let token = random_token();
        if let Some(state_dir) = state_dir {
            write_private(&state_dir.join("kubeconfig"), &kubeconfig(address, &certificate, &token))?;
        }
        let access = Access::token(&token);
        Ok(Self { server, kubelet, listener, certificate, access })
    }

    /// A client that works inside the process, without the network.
    pub(crate) fn client(&self) -> kube::Client {
        self.server.client()
    }

    /// Runs pods and serves `kubectl` until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let kubelet = self.kubelet.run(stop.clone());
        let api = self.server.serve(self.listener, Some(self.certificate), self.access, stop);
        let (outcome, ()) = tokio::join!(api, kubelet);
        if let Err(error) = outcome {
            tracing::error!(%error, "the one-machine cluster is not reachable for kubectl");
        }
    }
}

/// The addresses of the cluster's pods. Two services on one machine must not give their pods the same addresses, so
/// each state directory has its own range of 4,096 addresses in 127.64.0.0/10. It is derived from the directory's path
/// and stays the same.
fn pod_addresses(state_dir: &Path) -> AddressRange {
    let digest = Digest::sha256(state_dir.as_os_str().as_encoded_bytes());
    let [first, second, ..] = digest.as_bytes();
    let (second, third) = (64 + first % 64, second & 0xf0);
    AddressRange::new(Ipv4Addr::new(127, second, third, 0), 20)
}

fn runtime(embedded: &EmbeddedConfig, state_dir: Option<&Path>) -> anyhow::Result<Runtime> {
    if embedded.runtime == RuntimeKind::Simulated {
        return simulated(embedded.simulated).map(Runtime::Simulated);
    }
    let state_dir =
        state_dir.context("state_dir: missing; the process runtime keeps volumes and logs in it")?;
    let mut options = ProcessOptions::new(state_dir.join("kubelet"));
    options.images = embedded.images.iter().map(image_command).collect();
    options.on_shutdown = if embedded.keep_labs { OnShutdown::Keep } else { OnShutdown::Kill };
    Ok(Runtime::Process(options))
}

fn simulated(stages: SimulatedStages) -> anyhow::Result<SimulatedOptions> {
    let duration = |key: &str, span: SignedDuration| {
        Duration::try_from(span).with_context(|| format!("embedded.simulated.{key}: {span:#} is negative"))
    };
    Ok(SimulatedOptions {
        schedule: duration("schedule", stages.schedule)?,
        pull: duration("pull", stages.pull)?,
        init: duration("init", stages.init)?,
        ready: duration("ready", stages.ready)?,
        stop: duration("stop", stages.stop)?,
    })
}

fn image_command(mapping: &ImageMapping) -> ImageCommand {
    ImageCommand {
        pattern: mapping.pattern.clone(),
        containers: mapping.containers.clone(),
        command: mapping.command.clone(),
        args: mapping.args.clone(),
        env: mapping.env.clone(),
        working_dir: mapping.working_dir.clone(),
        pod_command: match mapping.pod_command {
            PodCommand::Wins => kubelet::PodCommand::Wins,
            PodCommand::Ignored => kubelet::PodCommand::Ignored,
        },
    }
}

/// Creates a namespace such as the service's own, where it keeps its records. On a Kubernetes the Helm release makes
/// it.
async fn make_namespace(client: &kube::Client, name: &str) -> anyhow::Result<()> {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    match Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).context("the service's namespace cannot be made in the one-machine cluster"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_directory_has_its_own_pod_addresses() {
        let (one, other) = (pod_addresses(Path::new("/a")), pod_addresses(Path::new("/b")));
        assert_ne!(one, other);
        assert_eq!(one, pod_addresses(Path::new("/a")));
    }
}
