//! Writes the pod's status: the newest one, one request at a time, whatever happened meanwhile.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::sync::watch;

use super::Sighting;
use crate::kubelet::{
    failure::{is_gone, is_refused},
    node::Node,
    status::{PodRecord, pod_status},
};

/// Writes until the record's owner is done, and then what it said last.
pub(super) async fn publish(
    node: Arc<Node>,
    mut sightings: watch::Receiver<Sighting>,
    mut news: watch::Receiver<PodRecord>,
) {
    // Readiness gates are conditions that others write.
    let mut gated = sightings.borrow().pod.spec.as_ref().is_some_and(|spec| spec.readiness_gates.is_some());
    let mut written: Option<PodStatus> = None;
    loop {
        tokio::select! {
            new = news.changed() => if new.is_err() {
                return;
            },
            seen = sightings.changed(), if gated => gated = seen.is_ok(),
        }
        let mut retry = Node::transient();
        loop {
            let Sighting { pod, gone } = sightings.borrow_and_update().clone();
            let record = news.borrow_and_update().clone();
            // The life writes its first word once the pod is bound; before, the status is the scheduler's.
            if gone || record.started_at.is_none() {
                break;
            }
            let status = status_of(&pod, &record, written.as_ref(), node.clock.now());
            if written.as_ref() == Some(&status) {
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

/// The status, with transition times of what was written last and the conditions that others own.
fn status_of(pod: &Pod, record: &PodRecord, written: Option<&PodStatus>, now: jiff::Timestamp) -> PodStatus {
    let Some(own) = written.and_then(|status| status.conditions.as_ref()) else {
        return pod_status(pod, record, now);
    };
    let is_own = |condition: &&PodCondition| !own.iter().any(|known| known.type_ == condition.type_);
    let others =
        pod.status.iter().flat_map(|status| status.conditions.iter().flatten()).filter(is_own).cloned();
    let conditions = own.iter().cloned().chain(others).collect();
    let seen = Pod {
        status: Some(PodStatus { conditions: Some(conditions), ..PodStatus::default() }),
        ..Pod { metadata: pod.metadata.clone(), spec: pod.spec.clone(), status: None }
    };
    pod_status(&seen, record, now)
}

async fn write(node: &Node, pod: &Pod, status: &PodStatus) -> Result<(), kube::Error> {
    let api: Api<Pod> =
        Api::namespaced(node.client.clone(), pod.metadata.namespace.as_deref().unwrap_or("default"));
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    // The uid makes sure that it is this very pod.
    let patch = Patch::Strategic(json!({"metadata": {"uid": pod.metadata.uid}, "status": status}));
    api.patch_status(name, &PatchParams::default(), &patch).await.map(drop)
}
