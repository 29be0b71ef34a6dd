//! A real control plane with a simulated node, whose pods start without delay.

use std::time::Duration;

use anyhow::Context as _;
use kube::api::ListParams;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wasmspawner_embedded::kubelet::{Kubelet, KubeletOptions, Runtime, SimulatedOptions};
use wasmspawner_tests::kubernetes::{Cluster, records, remove_definition};

/// A namespace and a node in a real cluster; both are deleted at the end.
pub(crate) struct RealCluster {
    pub(crate) cluster: Cluster,
    node: Node,
}

struct Node {
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl RealCluster {
    pub(crate) async fn enter() -> anyhow::Result<Self> {
        let cluster = Cluster::enter("scale").await?.context(
            "TEST_KUBECONFIG is not set: run it with `python3 tests/control-plane/run.py with`, or by `make scale`",
        )?;
        cluster.install_definition().await?;
        let node = Node::start(cluster.client.clone())?;
        Ok(Self { cluster, node })
    }

    /// Waits until the service has no record, and so none of its labs has objects: the namespaces of earlier labs must
    /// not burden the next measurement.
    pub(crate) async fn cleaned_up(&self) -> anyhow::Result<()> {
        let records = records(self.cluster.client.clone(), &self.cluster.namespace);
        let mut again = tokio::time::interval(Duration::from_millis(200));
        while !records.list_metadata(&ListParams::default().limit(1)).await?.items.is_empty() {
            again.tick().await;
        }
        Ok(())
    }

    /// A kubeconfig with all permissions.
    pub(crate) fn kubeconfig(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.cluster.file())?)
    }

    pub(crate) async fn leave(self) -> anyhow::Result<()> {
        self.node.stop.cancel();
        self.node.running.await?;
        remove_definition(self.cluster.client.clone()).await?;
        self.cluster.leave().await
    }
}

impl Node {
    fn start(client: kube::Client) -> anyhow::Result<Self> {
        let kubelet = kubelet(client, Duration::ZERO)?;
        let stop = CancellationToken::new();
        Ok(Self { stop: stop.clone(), running: tokio::spawn(kubelet.run(stop)) })
    }
}

/// Runs only the node, with pods that take a second to start, until this process is killed. Prints the namespace for
/// the service.
pub(crate) async fn run_kubelet() -> anyhow::Result<()> {
    let cluster = Cluster::enter("scale").await?.context("TEST_KUBECONFIG is not set")?;
    cluster.install_definition().await?;
    println!("{}", cluster.namespace);
    kubelet(cluster.client, Duration::from_secs(1))?.run(CancellationToken::new()).await;
    Ok(())
}

fn kubelet(client: kube::Client, ready: Duration) -> anyhow::Result<Kubelet> {
    let pods = SimulatedOptions {
        schedule: Duration::ZERO,
        pull: Duration::ZERO,
        init: Duration::ZERO,
        ready,
        stop: Duration::ZERO,
    };
    Ok(Kubelet::new(client, KubeletOptions::new("scale", Runtime::Simulated(pods)))?)
}
