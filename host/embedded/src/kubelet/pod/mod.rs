//! The life of one pod, in one task.

mod container;
mod end;
mod life;
mod publish;
mod schedule;
mod start;
mod state;

use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use kube::Api;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use life::live;

use super::addresses::HOST_IP;
use super::env::PodContext;
use super::event::EventDraft;
use super::node::Node;
use super::runtime::PodRuntime;
use super::status;

/// The last observation of a pod by the watch.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) pod: Arc<Pod>,
    /// True if the object no longer exists.
    pub(crate) gone: bool,
}

/// The tokens that tell the containers of a pod to end.
#[derive(Debug, Default)]
struct Stop {
    terminate: CancellationToken,
    /// Cancelled when the grace period is over.
    kill: CancellationToken,
}

/// The state that all steps of a pod's life share.
struct Worker {
    node: Arc<Node>,
    /// The pod as it was first observed. Its spec does not change.
    pod: Arc<Pod>,
    observed: watch::Receiver<Observed>,
    events: UnboundedSender<EventDraft>,
    /// The current status.
    status: watch::Sender<PodStatus>,
    runtime: PodRuntime,
    /// Cancelled when the kubelet is shut down.
    shutdown: CancellationToken,
}

impl Worker {
    fn spec(&self) -> &PodSpec {
        status::spec(&self.pod)
    }

    fn uid(&self) -> &str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.pod.metadata.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.pod.metadata.namespace.as_deref().unwrap_or("default")
    }

    fn api(&self) -> Api<Pod> {
        Api::namespaced(self.node.client.clone(), self.namespace())
    }

    fn pod_ip(&self) -> IpAddr {
        let known = self.read_status(|status| status.pod_ip.as_deref().and_then(|ip| ip.parse().ok()));
        known.unwrap_or(HOST_IP)
    }

    fn context(&self) -> PodContext<'_> {
        PodContext {
            client: &self.node.client,
            pod: &self.pod,
            pod_ip: self.pod_ip(),
            node_name: &self.node.name,
        }
    }

    /// Queues an event. The receiver exists until the last sender is dropped, so sending cannot fail.
    fn report(&self, draft: EventDraft) {
        let _ = self.events.send(draft);
    }
}

/// True if a client has deleted the pod.
fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}
