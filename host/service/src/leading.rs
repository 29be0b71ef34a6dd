//! The process that leads an installation looks after its labs; another waits until it leads.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use rustix::system::uname;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wasmspawner_core::config::Config;
use wasmspawner_files::whole_file;
use wasmspawner_kubernetes::k8s::Connection;
use wasmspawner_kubernetes::leadership::{Candidate, Leadership};
use wasmspawner_kubernetes::random_token::random_token;
use wasmspawner_spawner::prepull::LivePrepulls;
use wasmspawner_spawner::{self as spawner, Labs};

use crate::images::follow_images;
use crate::own_pod::own_pod;

/// The tasks of a process that leads.
pub(crate) struct Led {
    /// Follows the cluster. It goes on while the service drains.
    spawner: JoinHandle<()>,
    spawner_stop: CancellationToken,
    /// Keeps the Lease, until it is to be given back.
    lease: JoinHandle<()>,
    give_back: CancellationToken,
}

impl Led {
    /// Ends the tasks, the Lease last: whoever takes it finds nothing under way.
    pub(crate) async fn end(
        self,
        cluster_stop: &CancellationToken,
        background: &TaskTracker,
    ) -> anyhow::Result<()> {
        self.spawner_stop.cancel();
        self.spawner.await.context("the task that follows the cluster panicked")?;
        cluster_stop.cancel();
        background.close();
        background.wait().await;
        self.give_back.cancel();
        self.lease.await.context("the task that keeps the Lease panicked")
    }
}

/// Waits until this process leads, then looks after the labs until it is asked to `stop`, and lets those that are being
/// created get their pods. Returns `None` if it has never led.
pub(crate) async fn lead(
    candidate: Option<Candidate>,
    labs: &Labs,
    connection: &Connection,
    prepulls: LivePrepulls,
    background: &TaskTracker,
    stop: &CancellationToken,
) -> anyhow::Result<Option<Led>> {
    let (mut lease, give_back) = (tokio::spawn(async {}), CancellationToken::new());
    if let Some(mut candidate) = candidate {
        if stop.run_until_cancelled(Box::pin(candidate.acquire())).await.is_none() {
            return Ok(None);
        }
        let give_back = give_back.clone();
        lease = tokio::spawn(async move {
            if give_back.run_until_cancelled(Box::pin(candidate.keep())).await.is_none() {
                candidate.release().await;
            }
        });
    }
    follow_images(background, labs, connection, prepulls, stop)?;
    let spawner_stop = CancellationToken::new();
    let running = spawner::run(labs.clone(), connection.watches.clone(), spawner_stop.clone());
    // If that task ends early, the service would work with outdated knowledge. It therefore stops, and is started
    // again.
    let end = stop.clone().drop_guard();
    let spawner = tokio::spawn(async move {
        Box::pin(running).await;
        drop(end);
    });
    drain(labs, stop).await;
    Ok(Some(Led { spawner, spawner_stop, lease, give_back }))
}

/// Returns the candidate for leading this installation.
pub(crate) fn candidate(
    config: &Config,
    connection: &Connection,
    leadership: &Leadership,
) -> anyhow::Result<Candidate> {
    let kubernetes = &config.kubernetes;
    let (client, namespace) = (connection.coordination.clone(), kubernetes.namespace.as_str());
    let identity = identity(config.state_dir.as_deref())?;
    Ok(Candidate::new(client, namespace, kubernetes.instance(), identity, leadership.clone()))
}

/// Returns the name by which this process holds the Lease. It is that of an earlier process of the same pod, or with the
/// same state directory: only one process has either at a time, so the next one need not wait until the Lease has ended.
fn identity(state_dir: Option<&Path>) -> anyhow::Result<String> {
    if let Some(pod) = own_pod() {
        return Ok(format!("{}_{}", pod.name, pod.uid));
    }
    let fresh = || format!("{}_{}", uname().nodename().to_string_lossy(), random_token());
    let Some(file) = state_dir.map(|state_dir| state_dir.join("lease-holder")) else { return Ok(fresh()) };
    if let Ok(identity) = std::fs::read_to_string(&file) {
        return Ok(identity);
    }
    let identity = fresh();
    whole_file::write(&file, identity.as_bytes())
        .with_context(|| format!("{} cannot be written", file.display()))?;
    Ok(identity)
}

/// Waits for the request to end the service, and then until the labs that are being created have their pods. After a
/// restart, a lab with a pod is followed further, but a lab without one fails.
async fn drain(labs: &Labs, stop: &CancellationToken) {
    stop.cancelled().await;
    labs.drain();
    let limit = Duration::try_from(labs.context().config.current().limits.drain).unwrap_or_default();
    let created = async {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        while labs.creating() > 0 {
            again.tick().await;
        }
    };
    if tokio::time::timeout(limit, created).await.is_err() {
        tracing::warn!(
            labs = labs.creating(),
            "the service ends while labs are being created; they fail, and have to be started again"
        );
    }
}
