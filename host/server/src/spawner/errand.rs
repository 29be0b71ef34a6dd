//! What a driver has done for it while it goes on listening.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::lab::LabKey;
use wasmspawner_core::lifecycle::{DeleteStep, Event, Failure, Operation, Phase, SpawnStep};
use wasmspawner_core::manifest;
use wasmspawner_core::volumes::Release;

use super::errors::SpawnError;
use super::evaluate::{Approved, Decided, decide};
use super::place::Place;
use super::site::Site;
use crate::k8s::{Causes, Deletion, KubernetesError, PodToDelete};

/// What came of an errand.
pub(super) enum Answer {
    Decided(Result<Box<Decided>, Failure>),
    Applied(Result<Box<Pod>, Failure>),
    PodIsGone,
    RestIsGone,
    DeleteRefused(Failure),
    Nothing,
}

/// Asks the policies, and composes what they say into a lab.
pub(super) async fn evaluate(site: Arc<Site>, approved: Arc<Approved>, operation: Operation) -> Answer {
    Answer::Decided(decide(&site, &approved, &operation).await.map(Box::new))
}

/// Creates the lab's objects: the namespace, then everything else at once, then the pod.
pub(super) async fn apply(
    site: Arc<Site>,
    decided: Arc<Decided>,
    operation: Operation,
    cancel: CancellationToken,
) -> Answer {
    let within = remaining(&operation);
    let applied = site.applier.lab(&decided.objects, within, cancel).await;
    Answer::Applied(applied.map(Box::new).map_err(|error| failure(&error)))
}

/// Deletes the pod: this one, where its uid is known, and no later one of the same name.
pub(super) async fn delete_pod(
    site: Arc<Site>,
    place: Place,
    uid: Option<String>,
    operation: Operation,
) -> Answer {
    let grace = site.config.lab.config.termination_grace_period_seconds;
    let pod = PodToDelete { namespace: &place.namespace, name: &place.pod, uid };
    match site.deleter.pod(pod, grace, remaining(&operation)).await {
        Ok(Deletion::Accepted) => Answer::Nothing,
        Ok(Deletion::Gone) => Answer::PodIsGone,
        Err(error) => Answer::DeleteRefused(failure(&error)),
    }
}

/// Deletes everything else: the namespace, or where that stays, the lab's own objects in it.
pub(super) async fn delete_rest(site: Arc<Site>, key: LabKey, place: Place, operation: Operation) -> Answer {
    let within = remaining(&operation);
    let deleted = match site.config.kubernetes.namespaces {
        NamespaceReclaim::Delete => site.deleter.namespace(&place.namespace, within).await,
        NamespaceReclaim::Retain => {
            let selector = manifest::lab_selector(&site.config.kubernetes.instance, &key);
            site.deleter.lab_objects(&place.namespace, &selector, within).await
        }
    };
    match deleted {
        Ok(Deletion::Accepted) => Answer::Nothing,
        Ok(Deletion::Gone) => Answer::RestIsGone,
        Err(error) => Answer::DeleteRefused(failure(&error)),
    }
}

/// Remembers that this user has had a lab. Forgetting it costs one more run of an idempotent init container.
pub(super) async fn mark_provisioned(site: Arc<Site>, key: LabKey) -> Answer {
    if let Err(error) = site.provisioned.insert(&key.user, Timestamp::now()).await {
        tracing::warn!(%error, "could not record that the user has had a lab");
    }
    Answer::Nothing
}

/// Deletes the volumes of a server that is deleted.
pub(super) async fn release(
    site: Arc<Site>,
    key: LabKey,
    reply: oneshot::Sender<Result<Release, SpawnError>>,
) -> Answer {
    let released = match &site.volumes {
        Some(volumes) => volumes.release(&key).await.map_err(|error| SpawnError::Cluster(failure(&error))),
        None => Ok(Release::default()),
    };
    if let Ok(Release { delete, keep }) = &released {
        tracing::info!(user = %key.user, server = %key.server, deleted = delete.len(), kept = keep.len(), "the volumes of a deleted server are released");
    }
    let _ = reply.send(released);
    Answer::Nothing
}

/// The answer of an errand that panicked: the one that the lab waits for, as a failure.
pub(super) fn lost(phase: &Phase) -> Event {
    let message = "The service failed; its administrators find the reason in its log";
    let failure = Failure::service("InternalError", message);
    match phase {
        Phase::Starting(SpawnStep::Deciding) => Event::Decided(Err(failure)),
        Phase::Starting(SpawnStep::Creating | SpawnStep::Cleaning(DeleteStep::Draining))
        | Phase::Terminating(DeleteStep::Draining)
        | Phase::Failed { cleanup: Some(DeleteStep::Draining), .. } => Event::Applied(Err(failure)),
        _ => Event::DeleteRefused(failure),
    }
}

/// What is left of the operation's time: one deadline for all that it does.
fn remaining(operation: &Operation) -> Duration {
    Duration::try_from(operation.deadline.duration_since(Timestamp::now())).unwrap_or_default()
}

pub(super) fn failure(error: &KubernetesError) -> Failure {
    tracing::warn!(error = %Causes(error), "the cluster did not do what it was asked");
    let message = match error {
        KubernetesError::Refused { message, .. } => {
            format!("The cluster refused a part of the lab: {message}")
        }
        KubernetesError::Unavailable(_) => "The cluster cannot be reached; try again in a moment".to_owned(),
        KubernetesError::StillBeingDeleted { .. } => {
            "A volume of the lab is still being deleted; try again in a moment".to_owned()
        }
        KubernetesError::Cancelled => "The creation of the lab was cancelled".to_owned(),
        KubernetesError::Unexpected(_) | KubernetesError::Malformed(_) => {
            "The cluster answered with something unexpected".to_owned()
        }
    };
    Failure::cluster(error.reason(), message)
}
