//! The interface through which the server reads the logs of pods; what runs the containers implements it.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::io;

/// What a client asked of `GET /api/v1/namespaces/{namespace}/pods/{pod}/log`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod; the server has checked that it exists.
    pub pod: String,
    /// Name of the container; the server fills it in when the pod has only one, and has checked that it exists.
    pub container: String,
    /// Keep the stream open and go on with what the container writes.
    pub follow: bool,
    /// Read the log of the container's previous run.
    pub previous: bool,
    /// Start at most this many lines before the end.
    pub tail_lines: Option<u64>,
}

/// The bytes of a log, in pieces of any size. Dropping it ends a `follow`.
pub type LogStream = BoxStream<'static, io::Result<Bytes>>;

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no such log (any more), e.g. no previous run. Becomes a 404.
    #[error("{0}")]
    NotFound(String),
    /// The container has not started yet. Becomes a 400, as kubelets answer.
    #[error("{0}")]
    NotStarted(String),
    /// The log is there but cannot be read. Becomes a 500.
    #[error("cannot read the log")]
    Io(#[from] io::Error),
}

/// Opens logs of containers. Implemented by what runs them, see [`set_pod_logs`](super::ApiServer::set_pod_logs).
pub trait PodLogs: Send + Sync {
    /// Opens the log that `request` names.
    fn open(&self, request: LogRequest) -> BoxFuture<'_, Result<LogStream, LogError>>;
}
