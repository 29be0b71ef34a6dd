//! The end of a pod: its reasons, the grace period and the deletion of the object.

use std::time::Duration;

use k8s_openapi::api::core::v1::PodStatus;
use kube::api::{DeleteParams, Preconditions};

use super::{Worker, is_deleting};
use crate::kubelet::failure::is_gone;
use crate::kubelet::node::Node;
use crate::kubelet::simulated::SimulatedPod;
use crate::kubelet::status::running_since;

/// The maximum grace period of a process when the kubelet ends.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

pub(super) const EVICTED: &str =
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 51200Ki. ";
const SHUTDOWN: &str = "Pod was terminated in response to imminent node shutdown.";

/// The reason for the end of a pod that would have continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    /// A client has deleted the pod.
    Deletion,
    /// The pod's object has vanished.
    Gone,
    /// The node was short of memory (simulated).
    Eviction,
    /// The kubelet is shut down.
    Shutdown,
}

impl Worker {
    /// Waits until something interrupts the pod from outside.
    pub(super) async fn interrupted(&self) -> Interruption {
        let mut observed = self.observed.clone();
        let deleted = observed.wait_for(|seen| seen.gone || is_deleting(&seen.pod));
        tokio::select! {
            seen = deleted => match seen {
                Ok(seen) if !seen.gone => Interruption::Deletion,
                _ => Interruption::Gone,
            },
            () = self.evicted() => Interruption::Eviction,
            () = self.shutdown.cancelled() => Interruption::Shutdown,
        }
    }

    async fn evicted(&self) {
        let after = self.runtime.simulated().and_then(SimulatedPod::evicted_after);
        let Some(after) = after else { return std::future::pending().await };
        let any_runs = |status: &PodStatus| {
            status.container_statuses.iter().flatten().any(|container| running_since(container).is_some())
        };
        self.until(any_runs).await;
        tokio::time::sleep(after).await;
    }

    /// Waits until the object no longer exists.
    pub(super) async fn gone(&self) {
        let _ = self.observed.clone().wait_for(|seen| seen.gone).await;
    }

    /// Returns the grace period of the containers.
    pub(super) fn grace(&self, why: Interruption) -> Duration {
        let seconds = |seconds: Option<i64>| Some(Duration::from_secs(u64::try_from(seconds?).ok()?));
        let own = seconds(self.spec().termination_grace_period_seconds).unwrap_or(Duration::from_secs(30));
        match why {
            Interruption::Gone | Interruption::Eviction => Duration::ZERO,
            Interruption::Deletion => {
                seconds(self.observed.borrow().pod.metadata.deletion_grace_period_seconds).unwrap_or(own)
            }
            Interruption::Shutdown => own.min(SHUTDOWN_GRACE),
        }
    }

    /// Sets the reason in the pod's status after its containers have ended.
    pub(super) fn conclude(&self, why: Interruption) {
        let (reason, message) = match why {
            Interruption::Eviction => ("Evicted", EVICTED),
            Interruption::Shutdown => ("Terminated", SHUTDOWN),
            Interruption::Deletion | Interruption::Gone => return,
        };
        self.change(|status| {
            status.reason = Some(reason.to_owned());
            status.message = Some(message.to_owned());
        });
    }

    /// Waits until a client deletes the object, and then finishes the deletion.
    pub(super) async fn wait_for_deletion(&self) {
        let mut observed = self.observed.clone();
        tokio::select! {
            seen = observed.wait_for(|seen| seen.gone || is_deleting(&seen.pod)) => {
                if seen.is_ok_and(|seen| seen.gone) {
                    return;
                }
            }
            () = self.shutdown.cancelled() => return,
        }
        self.delete_object().await;
    }

    /// Deletes the object of this pod for good, but not of a later pod with the same name.
    pub(super) async fn delete_object(&self) {
        let of_this_pod = Preconditions { uid: self.pod.metadata.uid.clone(), resource_version: None };
        let delete = DeleteParams::default().grace_period(0).preconditions(of_this_pod);
        let mut retry = Node::transient();
        while let Err(error) = self.api().delete(self.name(), &delete).await {
            if is_gone(&error) {
                return;
            }
            tracing::warn!(pod = self.name(), %error, "a pod was not deleted, trying again");
            tokio::select! {
                () = tokio::time::sleep(retry.advance()) => {}
                () = self.gone() => return,
                () = self.shutdown.cancelled() => return,
            }
        }
    }
}
