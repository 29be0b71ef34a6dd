//! The logs of this node's pods, for `kubectl logs`.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::node::{Node, NodeRuntime};
use super::process::open_log;
use super::status;
use crate::apiserver::{LogError, LogRequest, LogStream, PodLogs};

/// The logs of a [`Kubelet`](super::Kubelet)'s pods. Lines have no times, so neither `sinceSeconds` nor `timestamps` is
/// supported.
#[derive(Debug, Clone)]
pub struct KubeletLogs(pub(super) Arc<Node>);

impl PodLogs for KubeletLogs {
    fn open(&self, request: LogRequest) -> BoxFuture<'_, Result<LogStream, LogError>> {
        self.open_request(request).boxed()
    }
}

impl KubeletLogs {
    async fn open_request(&self, request: LogRequest) -> Result<LogStream, LogError> {
        let LogRequest { namespace, pod: name, container, .. } = &request;
        let NodeRuntime::Process { state, .. } = &self.0.runtime else {
            let line = Bytes::from_static(b"A simulated container writes no log.\n");
            return Ok(stream::iter([Ok(line)]).boxed());
        };
        let pods: Api<Pod> = Api::namespaced(self.0.client.clone(), namespace);
        let pod = pods.get(name).await.map_err(io::Error::other)?;
        let waiting = |reason: &str| {
            let why = format!("container {container:?} in pod {name:?} is waiting to start: {reason}");
            LogError::NotStarted(why)
        };
        let status = pod.status.as_ref().and_then(|status| status::container(status, container));
        let status = status.ok_or_else(|| waiting("PodScheduling"))?;
        let restarts = status.restart_count - i32::from(request.previous);
        if restarts < 0 {
            let why = format!("previous terminated container {container:?} in pod {name:?} not found");
            return Err(LogError::NotFound(why));
        }
        let directory = state.pod(pod.metadata.uid.as_deref().unwrap_or_default()).container(container);
        match open_log(directory, restarts, request.follow, request.tail_lines).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match status.state.as_ref().and_then(|state| state.waiting.as_ref()) {
                    Some(state) => Err(waiting(state.reason.as_deref().unwrap_or_default())),
                    // A container that could not be started has written nothing.
                    None => Ok(stream::empty().boxed()),
                }
            }
            opened => Ok(opened?),
        }
    }
}
