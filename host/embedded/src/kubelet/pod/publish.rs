//! Writes the pod's status to the API server: always the newest one, one request at a time.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::sync::watch;

use super::Observed;
use crate::kubelet::failure::{is_gone, is_refused};
use crate::kubelet::node::Node;

/// Writes each status until the sender is dropped, and then the last one.
pub(super) async fn publish(
    node: Arc<Node>,
    mut observed: watch::Receiver<Observed>,
    mut news: watch::Receiver<PodStatus>,
) {
    let mut written: Option<PodStatus> = None;
    while news.changed().await.is_ok() {
        let mut retry = Node::transient();
        loop {
            let Observed { pod, gone } = observed.borrow_and_update().clone();
            let status = news.borrow_and_update().clone();
            // Until the pod is bound, its status belongs to the scheduler.
            if gone || status.start_time.is_none() || written.as_ref() == Some(&status) {
                break;
            }
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            match write(&node, &pod, &status).await {
                Ok(()) => {
                    written = Some(status);
                    break;
                }
                Err(error) if is_gone(&error) => return,
                Err(error) if is_refused(&error) => {
                    tracing::error!(pod = name, %error, "the API server refuses a pod's status");
                    break;
                }
                Err(error) => {
                    tracing::warn!(pod = name, %error, "a pod's status was not written, trying again");
                    tokio::time::sleep(retry.advance()).await;
                }
            }
        }
    }
}

async fn write(node: &Node, pod: &Pod, status: &PodStatus) -> Result<(), kube::Error> {
    let api: Api<Pod> =
        Api::namespaced(node.client.clone(), pod.metadata.namespace.as_deref().unwrap_or("default"));
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    // The uid ensures that the patch does not change a later pod with the same name.
    let patch = Patch::Merge(json!({"metadata": {"uid": pod.metadata.uid}, "status": status}));
    api.patch_status(name, &PatchParams::default(), &patch).await.map(drop)
}
