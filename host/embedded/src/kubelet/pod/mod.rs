//! The life of one pod, in one task.

mod container;
mod containers;
mod end;
mod health;
mod image;
mod life;
mod publish;
mod restore;
mod schedule;
mod start;
mod state;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::Api;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use life::live;
pub(crate) use state::PodState;

use super::{event::Journal, node::Node, runtime::PodRuntime};

/// What the watch knows of a pod.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) pod: Arc<Pod>,
    /// The object is no more.
    pub(crate) gone: bool,
}

/// Everything the parts of a pod's life share.
pub(crate) struct Worker {
    pub(crate) node: Arc<Node>,
    /// As it was first seen; a pod's spec does not change.
    pub(crate) pod: Arc<Pod>,
    pub(crate) observed: watch::Receiver<Observed>,
    pub(crate) journal: Journal,
    pub(crate) state: PodState,
    pub(crate) runtime: PodRuntime,
    /// The kubelet ends.
    pub(crate) shutdown: CancellationToken,
}

impl Worker {
    pub(crate) fn spec(&self) -> &PodSpec {
        static NONE: std::sync::LazyLock<PodSpec> = std::sync::LazyLock::new(PodSpec::default);
        self.pod.spec.as_ref().unwrap_or(&NONE)
    }

    pub(crate) fn uid(&self) -> &str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.pod.metadata.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> &str {
        self.pod.metadata.namespace.as_deref().unwrap_or("default")
    }

    pub(crate) fn api(&self) -> Api<Pod> {
        Api::namespaced(self.node.client.clone(), self.namespace())
    }
}
