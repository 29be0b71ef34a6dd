//! `kubectl logs` of this node's pods.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use tokio::sync::watch;

use super::node::{Node, NodeRuntime};
use super::process::{Ended, LogPart, open_log};
use super::status;
use crate::apiserver::{LogError, LogRequest, LogStream, PodLogs};

/// The logs of a [`Kubelet`](super::Kubelet)'s pods. Lines have no times, so there is neither `sinceSeconds`
/// nor `timestamps`.
#[derive(Debug, Clone)]
pub struct KubeletLogs {
    pub(super) node: Arc<Node>,
    pub(super) known: Arc<PodIndex>,
}

impl PodLogs for KubeletLogs {
    fn open(&self, request: LogRequest) -> BoxFuture<'_, Result<LogStream, LogError>> {
        self.open_request(request).boxed()
    }
}

impl KubeletLogs {
    async fn open_request(&self, request: LogRequest) -> Result<LogStream, LogError> {
        let LogRequest { namespace, pod, container, .. } = &request;
        let waiting = |reason: &str| {
            LogError::NotStarted(format!(
                "container {container:?} in pod {pod:?} is waiting to start: {reason}"
            ))
        };
        let known = self.known.find(namespace, pod).ok_or_else(|| waiting("PodScheduling"))?;
        let state = status::container(&known.status.borrow(), container).cloned();
        let state = state.ok_or_else(|| {
            LogError::NotFound(format!("container {container:?} is not valid for pod {pod:?}"))
        })?;
        let NodeRuntime::Process { state: directory, .. } = &self.node.runtime else {
            return Ok(
                stream::iter([Ok(Bytes::from_static(b"A simulated container writes no log.\n"))]).boxed()
            );
        };
        let directory = directory.pod(&known.uid).container(container);
        let number = if request.previous { state.restart_count - 1 } else { state.restart_count };
        let file = u32::try_from(number).map_err(|_| {
            LogError::NotFound(format!(
                "previous terminated container {container:?} in pod {pod:?} not found"
            ))
        })?;
        let part = LogPart { follow: request.follow && !request.previous, tail_lines: request.tail_lines };
        let ended = Ended { status: known.status, container: container.clone(), restarts: number };
        match open_log(directory.log(file), part, ended).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match state.state.and_then(|state| state.waiting) {
                    Some(state) => Err(waiting(state.reason.as_deref().unwrap_or_default())),
                    // A container that could not be started has written nothing.
                    None => Ok(stream::empty().boxed()),
                }
            }
            opened => Ok(opened?),
        }
    }
}

/// Pods by namespace and name.
#[derive(Debug, Default)]
pub(crate) struct PodIndex(Mutex<HashMap<(String, String), IndexedPod>>);

/// A pod's uid and its status as it is now.
#[derive(Debug, Clone)]
pub(crate) struct IndexedPod {
    pub(crate) uid: String,
    pub(crate) status: watch::Receiver<PodStatus>,
}

impl PodIndex {
    pub(crate) fn add(&self, pod: &Pod, status: watch::Receiver<PodStatus>) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.pods().insert(key(pod), IndexedPod { uid, status });
    }

    /// Forgets this very pod, not a later one of the same name.
    pub(crate) fn remove(&self, pod: &Pod) {
        let mut pods = self.pods();
        if pods.get(&key(pod)).is_some_and(|known| pod.metadata.uid.as_ref() == Some(&known.uid)) {
            pods.remove(&key(pod));
        }
    }

    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<IndexedPod> {
        self.pods().get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    fn pods(&self) -> MutexGuard<'_, HashMap<(String, String), IndexedPod>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(pod: &Pod) -> (String, String) {
    (pod.metadata.namespace.clone().unwrap_or_default(), pod.metadata.name.clone().unwrap_or_default())
}
