//! The interface through which the server reads the logs of pods. The kubelet, which runs the containers, implements
//! it.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::io;

/// The parameters of `GET /api/v1/namespaces/{namespace}/pods/{pod}/log`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod. The server has checked that it exists.
    pub pod: String,
    /// The name of the container. The server sets it if the pod has only one container, and has checked that it exists.
    pub container: String,
    /// True to keep the stream open and continue with the container's new output.
    pub follow: bool,
    /// True to read the log of the container's previous run.
    pub previous: bool,
    /// The largest number of lines before the end at which the stream starts.
    pub tail_lines: Option<u64>,
}

/// The bytes of a log, in pieces of any size. Dropping it ends a `follow`.
pub type LogStream = BoxStream<'static, io::Result<Bytes>>;

/// The reasons for which a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no such log, or no longer one, e.g. no previous run. Becomes a 404.
    #[error("{0}")]
    NotFound(String),
    /// The container has not started yet. Becomes a 400, as with a kubelet.
    #[error("{0}")]
    NotStarted(String),
    /// The log exists but cannot be read. Becomes a 500.
    #[error("cannot read the log")]
    Io(#[from] io::Error),
}

/// Opens logs of containers. The kubelet, which runs them, implements it; see
/// [`set_pod_logs`](super::ApiServer::set_pod_logs).
pub trait PodLogs: Send + Sync {
    /// Opens the log that `request` names.
    fn open(&self, request: LogRequest) -> BoxFuture<'_, Result<LogStream, LogError>>;
}
