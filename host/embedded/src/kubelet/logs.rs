//! `kubectl logs` of this node's pods.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};

use super::{
    node::{Node, NodeRuntime},
    pod_index::PodIndex,
    process::{Ended, LogPart, open_log},
    status::ContainerState,
};
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
        let record = known.record.borrow().container(container).cloned();
        let record = record.ok_or_else(|| {
            LogError::NotFound(format!("container {container:?} is not valid for pod {pod:?}"))
        })?;
        let NodeRuntime::Process { state, .. } = &self.node.runtime else {
            return Ok(
                stream::iter([Ok(Bytes::from_static(b"A simulated container writes no log.\n"))]).boxed()
            );
        };
        let directory = state.pod(&known.uid).container(container);
        let number = if request.previous {
            record.restarts.checked_sub(1).ok_or_else(|| {
                LogError::NotFound(format!(
                    "previous terminated container {container:?} in pod {pod:?} not found"
                ))
            })?
        } else {
            record.restarts
        };
        let part = LogPart { follow: request.follow && !request.previous, tail_lines: request.tail_lines };
        let ended = Ended { record: known.record, container: container.clone(), restarts: number };
        let opened = open_log(directory.log(number), part, ended).await;
        match (opened, &record.state) {
            (Ok(stream), _) => Ok(stream),
            (Err(error), ContainerState::Waiting { reason, .. })
                if error.kind() == io::ErrorKind::NotFound =>
            {
                Err(waiting(reason))
            }
            // A container that could not be started has written nothing.
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(stream::empty().boxed()),
            (Err(error), _) => Err(error.into()),
        }
    }
}
