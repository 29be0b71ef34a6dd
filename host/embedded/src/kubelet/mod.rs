//! A kubelet that runs pods against any Kubernetes API.
//!
//! A [`Kubelet`] is a node of one machine and everything around it that pods need: it registers its Node, binds pods to
//! it (the scheduler's part), binds claims (a provisioner's part), gives each pod a loopback address of its own, runs
//! containers, and writes the statuses and events that a real kubelet writes. The containers run in a [`Runtime`]: as
//! local processes, or only simulated.

mod addresses;
mod claims;
mod env;
mod event;
mod exit;
mod failure;
mod image;
mod logs;
mod mounts;
mod node;
mod options;
mod pod;
mod probe;
mod process;
mod restart;
mod runtime;
mod simulated;
mod status;
mod volume;
mod watch;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

pub use addresses::AddressRange;
pub use image::{ImageCommand, PodCommand};
pub use logs::KubeletLogs;
pub use options::{KubeletOptions, OnShutdown, ProcessOptions, Runtime, SimulatedOptions};
pub use process::{LeftoverError, kill_leftovers};
pub use restart::BackoffOptions;

use node::{Node, NodeRuntime};

/// The period of the check of the logs' sizes.
const LOG_PERIOD: Duration = Duration::from_secs(30);
/// The size limit of a container's log, in bytes. A longer log is cut, and one older part is kept.
const LOG_LIMIT: u64 = 10 << 20;

/// A kubelet that is not running yet.
#[derive(Debug)]
pub struct Kubelet {
    node: Arc<Node>,
}

/// The reasons for which a kubelet cannot be created.
#[derive(Debug, Error)]
pub enum KubeletError {
    /// The state directory cannot be created.
    #[error("the kubelet's state directory cannot be created: choose one that this program may write to")]
    StateDirectory(#[source] io::Error),
}

impl Kubelet {
    /// Creates a kubelet for the API server behind `client`.
    pub fn new(client: Client, options: KubeletOptions) -> Result<Self, KubeletError> {
        let node = Node::new(client, options).map_err(KubeletError::StateDirectory)?;
        Ok(Self { node: Arc::new(node) })
    }

    /// Returns the logs of the kubelet's pods, for
    /// [`ApiServer::set_pod_logs`](crate::apiserver::ApiServer::set_pod_logs).
    pub fn logs(&self) -> Arc<KubeletLogs> {
        Arc::new(KubeletLogs(self.node.clone()))
    }

    /// Runs pods until `shutdown`. After that, ends or keeps their processes ([`OnShutdown`]), which takes at most 15
    /// s.
    ///
    /// Takes over pods of an earlier kubelet of the same node, and adopts processes that still run.
    pub async fn run(self, shutdown: CancellationToken) {
        tokio::join!(
            self.node.keep_registered(shutdown.clone()),
            watch::watch_pods(self.node.clone(), shutdown.clone()),
            cut_logs(self.node.clone(), shutdown),
        );
    }
}

async fn cut_logs(node: Arc<Node>, shutdown: CancellationToken) {
    let NodeRuntime::Process { state, .. } = &node.runtime else { return };
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOG_PERIOD) => {}
            () = shutdown.cancelled() => return,
        }
        let state = state.clone();
        match tokio::task::spawn_blocking(move || process::cut_logs(&state, LOG_LIMIT)).await {
            Ok(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "logs were not cut");
            }
            _ => {}
        }
    }
}
