//! The pods with which nodes pull images in advance.

use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, PostParams, Preconditions};
use kube::runtime::watcher;
use wasmspawner_core::images::{PullPod, prepull_selector};
use wasmspawner_core::names::LabelValue;

use super::list::list_some;
use super::rate_limiter::in_background;
use super::retry::{RetryPolicy, retrying};
use super::{Connection, KubernetesError, StatusReason};
use crate::watches::{Readable, changes, short_watch};

/// The time limit of a request with its retries. A failed operation is repeated later.
const TRY_FOR: Duration = Duration::from_secs(10);

/// The pods with which nodes pull images in advance, in the service's own namespace. Requests for these pods go after
/// all others.
#[derive(Clone)]
pub struct PullPods {
    pods: Api<Pod>,
    /// The same pods, through the client for watches.
    watched: Api<Readable<Pod>>,
    instance: LabelValue,
    retry_policy: RetryPolicy,
}

/// The outcome of the creation of a pod.
pub enum Created {
    /// The pod exists.
    Own(Box<PullPod>),
    /// A pod of the same name exists that is not this installation's.
    Foreign,
    /// The cluster has changed the pod so that it cannot be recognized. The pod was deleted.
    Changed,
}

/// A change of the pods.
pub enum PullPodChange {
    /// The complete list of pods.
    All(Vec<PullPod>),
    /// A new or changed pod.
    Changed(Box<PullPod>),
    /// The name of a pod that is gone.
    Gone(String),
    /// The error of a watch that failed and is tried again.
    Failed(String),
}

impl PullPods {
    /// The pods of an installation in `namespace`. Each request may take `request_timeout`.
    pub fn new(
        connection: &Connection,
        namespace: &str,
        instance: LabelValue,
        request_timeout: Duration,
    ) -> Self {
        Self {
            pods: Api::namespaced(connection.requests.clone(), namespace),
            watched: Api::namespaced(connection.watches.clone(), namespace),
            instance,
            retry_policy: RetryPolicy::from_timeouts(request_timeout, TRY_FOR),
        }
    }

    /// Creates the pod for a pull.
    pub async fn create(&self, pod: &Pod) -> Result<Created, KubernetesError> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let (action, params) = (format!("create Pod {name}"), PostParams::default());
        let created = retrying(&self.retry_policy, &action, || self.pods.create(&params, pod));
        let created = match in_background(created).await {
            // An earlier attempt may have succeeded although its answer was lost.
            Err(KubernetesError::Refused { reason: StatusReason::AlreadyExists, .. }) => {
                let found = retrying(&self.retry_policy, &action, || self.pods.get(name));
                let found = PullPod::observed(&in_background(found).await?, &self.instance);
                return Ok(found.map_or(Created::Foreign, |own| Created::Own(Box::new(own))));
            }
            created => created?,
        };
        if let Some(own) = PullPod::observed(&created, &self.instance) {
            return Ok(Created::Own(Box::new(own)));
        }
        let Some(uid) = &created.metadata.uid else { return Ok(Created::Foreign) };
        self.delete_by_uid(name, uid).await?;
        Ok(Created::Changed)
    }

    /// Lists all pods.
    pub async fn list(&self) -> Result<Vec<PullPod>, KubernetesError> {
        let own = |pod: Pod| PullPod::observed(&pod, &self.instance);
        let selector = prepull_selector(&self.instance);
        in_background(list_some(&self.pods, &selector, "list the pods that pull images", own)).await
    }

    /// Deletes a pod at once: its container does nothing, so there is nothing to wait for. Succeeds if the pod is gone
    /// already.
    pub async fn delete(&self, pod: &PullPod) -> Result<(), KubernetesError> {
        self.delete_by_uid(&pod.name, &pod.uid).await
    }

    async fn delete_by_uid(&self, name: &str, uid: &str) -> Result<(), KubernetesError> {
        let action = format!("delete Pod {name}");
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let deleted = retrying(&self.retry_policy, &action, || self.pods.delete(name, &params));
        match in_background(deleted).await {
            Err(KubernetesError::Refused {
                reason: StatusReason::NotFound | StatusReason::Conflict, ..
            }) => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Follows the pods. The stream never ends.
    pub fn follow(&self) -> impl Stream<Item = PullPodChange> + use<> {
        let config = short_watch().labels(&prepull_selector(&self.instance));
        let instance = self.instance.clone();
        let mut listed = Vec::new();
        changes(self.watched.clone(), config).filter_map(move |event| {
            let own = |pod: &Pod| PullPod::observed(pod, &instance);
            std::future::ready(match event {
                Ok(watcher::Event::Init) => {
                    listed.clear();
                    None
                }
                Ok(watcher::Event::InitApply(pod)) => {
                    listed.extend(own(&pod));
                    None
                }
                Ok(watcher::Event::InitDone) => Some(PullPodChange::All(std::mem::take(&mut listed))),
                Ok(watcher::Event::Apply(pod)) => own(&pod).map(|pod| PullPodChange::Changed(Box::new(pod))),
                Ok(watcher::Event::Delete(pod)) => pod.metadata.name.map(PullPodChange::Gone),
                Err(error) => Some(PullPodChange::Failed(error.to_string())),
            })
        })
    }
}
