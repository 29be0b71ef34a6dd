//! The scheduler's part: binds the pod to this node, or writes the obstacle into its status.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Status;
use serde_json::json;

use super::{Observed, Worker, is_deleting};
use crate::kubelet::claims;
use crate::kubelet::event::EventDraft;
use crate::kubelet::failure::{is_conflict, is_gone};
use crate::kubelet::status::unscheduled;

/// The result of scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheduled {
    /// The pod is bound to this node.
    Here,
    /// The pod's object is gone, or the pod is bound to another node.
    Gone,
    /// The pod was deleted before it was bound.
    DeletedBefore,
}

impl Worker {
    /// Waits until the pod is bound to this node, and binds it if possible.
    pub(super) async fn schedule(&mut self) -> Scheduled {
        let mut written = None;
        loop {
            let Observed { pod, gone } = self.observed.borrow_and_update().clone();
            if gone || self.shutdown.is_cancelled() {
                return Scheduled::Gone;
            }
            match pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
                Some(node) if node == self.node.name => return Scheduled::Here,
                Some(_) => return Scheduled::Gone,
                None => {}
            }
            if is_deleting(&pod) {
                return Scheduled::DeletedBefore;
            }
            let reason = tokio::select! {
                reason = self.reason_against() => reason,
                () = self.next_observed() => continue,
                () = self.shutdown.cancelled() => return Scheduled::Gone,
            };
            match reason {
                None => {
                    tokio::select! {
                        () = self.sleep(self.runtime.simulated().map_or(Duration::ZERO, |pod| pod.delays.schedule)) => {}
                        () = self.shutdown.cancelled() => return Scheduled::Gone,
                    }
                    if let Some(scheduled) = self.bind().await {
                        return scheduled;
                    }
                }
                Some(reason) => {
                    let message = format!("0/1 nodes are available: {reason}.");
                    self.refuse(&message, &mut written).await;
                    tokio::select! {
                        () = self.next_observed() => {}
                        () = tokio::time::sleep(self.node.retry) => {}
                        () = self.shutdown.cancelled() => return Scheduled::Gone,
                    }
                }
            }
        }
    }

    /// Returns the reason for which the pod cannot be bound to this node now.
    async fn reason_against(&self) -> Option<String> {
        let mut selector = self.spec().node_selector.iter().flatten();
        if !selector.all(|(key, value)| self.node.labels.get(key) == Some(value)) {
            return Some("1 node(s) didn't match Pod's node affinity/selector".to_owned());
        }
        let volumes = self.spec().volumes.iter().flatten();
        for claim in volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref()) {
            let name = &claim.claim_name;
            match claims::bind(&self.node.client, self.namespace(), name).await {
                Ok(true) => {}
                Ok(false) => return Some(format!("persistentvolumeclaim {name:?} not found")),
                Err(error) => return Some(format!("persistentvolumeclaim {name:?} not bound: {error}")),
            }
        }
        None
    }

    /// Binds the pod to this node. `None` if scheduling has to be repeated.
    async fn bind(&mut self) -> Option<Scheduled> {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": self.name(), "namespace": self.namespace(), "uid": self.uid()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.node.name},
        });
        let (api, params) = (self.api(), PostParams::default());
        match api.create_subresource::<_, Status>("binding", self.name(), &params, &binding).await {
            Ok(_) => {
                let (namespace, name, node) = (self.namespace(), self.name(), &self.node.name);
                let message = format!("Successfully assigned {namespace}/{name} to {node}");
                self.report(EventDraft::normal("Scheduled", message).by_scheduler());
                Some(Scheduled::Here)
            }
            Err(error) if is_gone(&error) => Some(Scheduled::Gone),
            Err(error) => {
                if !is_conflict(&error) {
                    tracing::warn!(pod = self.name(), %error, "a pod was not bound");
                }
                tokio::select! {
                    () = self.next_observed() => {}
                    () = tokio::time::sleep(Duration::from_secs(1)) => {}
                }
                None
            }
        }
    }

    /// Reports that no node fits: with an event each time, and in the status once.
    async fn refuse(&self, message: &str, written: &mut Option<String>) {
        self.report(EventDraft::warning("FailedScheduling", message).by_scheduler());
        if written.as_deref() == Some(message) {
            return;
        }
        let pod = self.observed.borrow().pod.clone();
        let status = unscheduled(&pod, message, Timestamp::now());
        let patch = json!({"metadata": {"uid": self.uid()}, "status": status});
        match self.api().patch_status(self.name(), &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => *written = Some(message.to_owned()),
            Err(error) => {
                tracing::debug!(pod = self.name(), %error, "the status of an unschedulable pod was not written");
            }
        }
    }

    async fn next_observed(&self) {
        let mut observed = self.observed.clone();
        if observed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
