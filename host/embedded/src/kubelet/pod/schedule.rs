//! Playing the scheduler: the pod is bound to this node, or told why not.

use k8s_openapi::api::core::v1::{Binding, ObjectReference};
use kube::{
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    core::Status,
};
use serde_json::json;

use super::{Sighting, Worker, end::is_deleting};
use crate::kubelet::{
    event::{Happening, Reporter},
    failure::{is_conflict, is_gone},
    scheduling::{misfit, unschedulable_message},
    status::unscheduled,
};

/// How scheduling went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheduled {
    /// The pod is this node's.
    Here,
    /// Its object is no more, or is somebody else's to care for.
    Gone,
    /// Somebody asked for its deletion before it had a node.
    DeletedBefore,
}

impl Worker {
    /// Until the pod has this node.
    pub(super) async fn schedule(&mut self) -> Scheduled {
        let mut told = None;
        loop {
            let Sighting { pod, gone } = self.sightings.borrow_and_update().clone();
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
            if pod
                .spec
                .as_ref()
                .is_some_and(|spec| spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()))
            {
                self.next_sighting().await;
                continue;
            }
            let mut claims = self.node.claims.subscribe();
            let reason = tokio::select! {
                reason = self.reason_against() => reason,
                () = self.next_sighting() => continue,
                () = self.shutdown.cancelled() => return Scheduled::Gone,
            };
            match reason {
                None => {
                    tokio::select! {
                        () = self.runtime.scheduling_delay() => {}
                        () = self.shutdown.cancelled() => return Scheduled::Gone,
                    }
                    if let Some(scheduled) = self.bind().await {
                        return scheduled;
                    }
                }
                Some(reason) => {
                    self.refuse(&unschedulable_message(&reason), &mut told).await;
                    tokio::select! {
                        () = self.next_sighting() => {}
                        Ok(()) = claims.changed() => {}
                        () = tokio::time::sleep(self.node.retry) => {}
                        () = self.shutdown.cancelled() => return Scheduled::Gone,
                    }
                }
            }
        }
    }

    /// Why the pod cannot have this node now.
    async fn reason_against(&self) -> Option<String> {
        if let Some(reason) = misfit(self.spec(), &self.node.labels) {
            return Some(reason.to_owned());
        }
        if let Some(reason) = self.runtime.unschedulable(&self.pod, &self.journal) {
            return Some(reason);
        }
        let volumes = self.spec().volumes.iter().flatten();
        for claim in volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref()) {
            let missing = self.node.claims.missing(&self.node, self.namespace(), &claim.claim_name).await;
            if missing.is_some() {
                return missing;
            }
        }
        None
    }

    /// `None` when it must be looked at again.
    async fn bind(&mut self) -> Option<Scheduled> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: self.pod.metadata.name.clone(),
                namespace: self.pod.metadata.namespace.clone(),
                uid: self.pod.metadata.uid.clone(),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(self.node.name.clone()),
                ..ObjectReference::default()
            },
        };
        let (api, params) = (self.api(), PostParams::default());
        match api.create_subresource::<_, Status>("binding", self.name(), &params, &binding).await {
            Ok(_) => {
                let (namespace, name, node) = (self.namespace(), self.name(), &self.node.name);
                let message = format!("Successfully assigned {namespace}/{name} to {node}");
                self.journal.write(Happening::normal("Scheduled", message).by(Reporter::Scheduler));
                Some(Scheduled::Here)
            }
            Err(error) if is_gone(&error) => Some(Scheduled::Gone),
            Err(error) => {
                if !is_conflict(&error) {
                    tracing::warn!(pod = self.name(), namespace = self.namespace(), %error, "a pod was not bound");
                }
                tokio::select! {
                    () = self.next_sighting() => {}
                    () = tokio::time::sleep(std::time::Duration::from_secs(1)) => {}
                }
                None
            }
        }
    }

    /// Says why no node fits, as event each time and in the status once.
    async fn refuse(&self, message: &str, told: &mut Option<String>) {
        self.journal.write(Happening::warning("FailedScheduling", message).by(Reporter::Scheduler));
        if told.as_deref() == Some(message) {
            return;
        }
        let pod = self.sightings.borrow().pod.clone();
        let status = unscheduled(&pod, message, self.node.clock.now());
        let patch = json!({"metadata": {"uid": self.uid()}, "status": status});
        match self.api().patch_status(self.name(), &PatchParams::default(), &Patch::Strategic(patch)).await {
            Ok(_) => *told = Some(message.to_owned()),
            Err(error) => tracing::debug!(pod = self.name(), %error, "an unschedulable pod was not told"),
        }
    }

    async fn next_sighting(&self) {
        let mut sightings = self.sightings.clone();
        if sightings.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
