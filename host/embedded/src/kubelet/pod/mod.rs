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

/// What the watch knows of a pod.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) pod: Arc<Pod>,
    /// The object is no more.
    pub(crate) gone: bool,
}

/// The requests to the containers of a pod to end.
#[derive(Debug, Default)]
struct Stop {
    terminate: CancellationToken,
    /// The containers have had their time.
    kill: CancellationToken,
}

/// What all steps of a pod's life share.
struct Worker {
    node: Arc<Node>,
    /// The pod as it was seen first; its spec does not change.
    pod: Arc<Pod>,
    observed: watch::Receiver<Observed>,
    events: UnboundedSender<EventDraft>,
    /// The status as it is now.
    status: watch::Sender<PodStatus>,
    runtime: PodRuntime,
    /// The kubelet ends.
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

    /// Has an event written. Events are written until the last sender is dropped, so the reader is there.
    fn report(&self, draft: EventDraft) {
        let _ = self.events.send(draft);
    }
}

/// Whether a client has asked for the pod's deletion.
fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}
