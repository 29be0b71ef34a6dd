//! Why and how a pod ends.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};

use super::{Worker, life::Interruption};
use crate::kubelet::{
    event::EventDraft,
    failure::is_gone,
    node::Node,
    status::{End, Phase},
};

/// What a process gets at most to end when the kubelet does.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

const EVICTED: &str = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 51200Ki. ";

impl Worker {
    /// Until something ends the pod from outside.
    pub(super) async fn interrupted(&self) -> Interruption {
        let mut observed = self.observed.clone();
        let deleted = observed.wait_for(|seen| seen.gone || is_deleting(&seen.pod));
        tokio::select! {
            seen = deleted => match seen {
                Ok(seen) if !seen.gone => Interruption::Deletion,
                _ => Interruption::Gone,
            },
            () = self.deadline() => Interruption::Deadline,
            () = self.runtime.evicted(&self.state) => Interruption::Eviction,
            () = self.shutdown.cancelled() => Interruption::Shutdown,
        }
    }

    /// Until the object is no more.
    pub(super) async fn gone(&self) {
        let _ = self.observed.clone().wait_for(|seen| seen.gone).await;
    }

    async fn deadline(&self) {
        let seconds = self.spec().active_deadline_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let Some(allowed) = seconds.map(Duration::from_secs) else { return std::future::pending().await };
        let started = self.state.read(|record| record.started_at);
        let ran = started.and_then(|at| Duration::try_from(self.node.clock.now().duration_since(at)).ok());
        tokio::time::sleep(allowed.saturating_sub(ran.unwrap_or_default())).await;
    }

    /// How long the containers get.
    pub(super) fn grace(&self, why: &Interruption) -> Duration {
        let seconds =
            |seconds: Option<i64>| seconds.and_then(|s| u64::try_from(s).ok()).map(Duration::from_secs);
        let spec = seconds(self.spec().termination_grace_period_seconds).unwrap_or(Duration::from_secs(30));
        match why {
            Interruption::Gone | Interruption::Eviction => Duration::ZERO,
            Interruption::Deletion => {
                seconds(self.observed.borrow().pod.metadata.deletion_grace_period_seconds).unwrap_or(spec)
            }
            Interruption::Deadline => spec,
            Interruption::Shutdown => spec.min(SHUTDOWN_GRACE),
        }
    }

    /// Says why, before the containers are stopped.
    pub(super) fn announce(&self, why: &Interruption) {
        match why {
            Interruption::Eviction => self.journal.write(EventDraft::warning("Evicted", EVICTED)),
            Interruption::Deadline => self.journal.write(EventDraft::warning("DeadlineExceeded", DEADLINE)),
            _ => {}
        }
    }

    /// The pod's own end, after its containers'.
    pub(super) fn conclude(&self, why: &Interruption) {
        self.state.change(|record| match why {
            Interruption::Deadline => record.end = Some(End::new("DeadlineExceeded", DEADLINE)),
            Interruption::Eviction => {
                record.end = Some(End::new("Evicted", EVICTED));
                record.disruption = Some(End::new("TerminationByKubelet", EVICTED));
            }
            Interruption::Shutdown => {
                record.end = Some(End::new("Terminated", SHUTDOWN));
                record.disruption = Some(End::new("TerminationByKubelet", SHUTDOWN));
            }
            Interruption::Deletion | Interruption::Gone => {}
        });
    }

    /// Whether the pod's status is final already.
    pub(super) fn has_ended(&self) -> bool {
        let phase = self.pod.status.as_ref().and_then(|status| status.phase.as_deref());
        [Phase::Succeeded, Phase::Failed].iter().any(|ended| phase == Some(ended.as_str()))
    }

    /// The containers have ended: the object goes when somebody asks for it.
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

    /// The final deletion, of this very pod.
    pub(super) async fn delete_object(&self) {
        let of_this_pod = Preconditions { uid: self.pod.metadata.uid.clone(), resource_version: None };
        let delete = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(of_this_pod),
            ..DeleteParams::default()
        };
        let mut retry = Node::transient();
        while let Err(error) = self.api().delete(self.name(), &delete).await {
            if is_gone(&error) {
                return;
            }
            tracing::warn!(pod = self.name(), namespace = self.namespace(), %error, "a pod was not deleted, trying again");
            tokio::select! {
                () = tokio::time::sleep(retry.advance()) => {}
                () = self.gone() => return,
                () = self.shutdown.cancelled() => return,
            }
        }
    }
}

const DEADLINE: &str = "Pod was active on the node longer than the specified deadline";
const SHUTDOWN: &str = "Pod was terminated in response to imminent node shutdown.";

/// Somebody has asked for the pod's deletion.
pub(super) fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}
