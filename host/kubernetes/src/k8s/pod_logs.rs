//! The logs of pods.

use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::Client;
use kube::api::{Api, LogParams};
use wasmspawner_core::record::Place;

use super::{KubernetesError, belongs_to};

/// The largest part of a log that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the logs of pods. Only the pods of a given spawn are read, whoever else has a pod of that name.
#[derive(Clone)]
pub struct PodLogs {
    client: Client,
}

/// The part of a log that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogQuery {
    /// The name of the container; `None` for the default one.
    pub container: Option<String>,
    /// True for the log of the run before the container's last restart.
    pub previous: bool,
    /// The number of lines.
    pub lines: u16,
}

/// The end of a container's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogText {
    /// The name of the pod.
    pub pod: String,
    /// The name of the container.
    pub container: String,
    /// The text. What is not UTF-8 is replaced.
    pub text: String,
    /// True if the text was cut at its end.
    pub cut_off: bool,
}

/// The reason why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The spawn has no pod.
    #[error("there is no pod now; the history of the lab has what it printed last, if it has failed")]
    NoPod,
    /// The pod has no container of this name.
    #[error("the pod has no container `{asked}`; it has {}", .containers.join(", "))]
    NoContainer {
        /// The name that was asked for.
        asked: String,
        /// The names of the pod's containers.
        containers: Vec<String>,
    },
    /// The container has not run yet, or not before.
    #[error("there is no such log: {0}")]
    NoLog(String),
    /// The account of the service may not read logs.
    #[error(
        "this site does not let the service read logs: its account lacks the permission `get` for `pods/log` (`rbac.logs` of \
         the chart, or deploy/permissions/logs.yaml)"
    )]
    NotPermitted,
    /// The cluster does not answer, or with something unexpected.
    #[error(transparent)]
    Cluster(KubernetesError),
}

impl PodLogs {
    /// Creates a `PodLogs` for `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Reads the end of a log of the pod at `place`, if it belongs to the spawn whose record has the uid `spawn`.
    /// `default` is the name of the container that is read if the query names none.
    pub async fn read(
        &self,
        place: &Place,
        spawn: &str,
        default: &str,
        query: &LogQuery,
    ) -> Result<LogText, LogError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), place.namespace.as_str());
        let name = place.pod.as_str();
        let pod = pods.get_opt(name).await.map_err(error)?;
        let pod = pod.filter(|pod| belongs_to(&pod.metadata, spawn)).ok_or(LogError::NoPod)?;
        let container = container(&pod, default, query)?;
        let params = LogParams {
            container: Some(container.clone()),
            previous: query.previous,
            tail_lines: Some(query.lines.into()),
            limit_bytes: Some(MAX_BYTES.cast_signed()),
            ..LogParams::default()
        };
        let stream = pods.log_stream(name, &params).await.map_err(error)?;
        let mut bytes = Vec::new();
        let read = stream.take(MAX_BYTES).read_to_end(&mut bytes).await;
        let length = read.map_err(|error| LogError::Cluster(KubernetesError::Malformed(Box::new(error))))?;
        // The request names the pod, and not its uid. If another pod has the name by now, the log may be that one's.
        let after = pods.get_metadata_opt(name).await.map_err(error)?;
        if after.is_some_and(|after| after.metadata.uid != pod.metadata.uid) {
            return Err(LogError::NoPod);
        }
        let cut_off = u64::try_from(length).is_ok_and(|length| length >= MAX_BYTES);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(LogText { pod: name.to_owned(), container, text, cut_off })
    }
}

/// The name of the container whose log is read.
fn container(pod: &Pod, default: &str, query: &LogQuery) -> Result<String, LogError> {
    let names = pod.spec.iter().flat_map(|PodSpec { containers, init_containers, .. }| {
        containers.iter().chain(init_containers.iter().flatten()).map(|container| container.name.clone())
    });
    let containers: Vec<String> = names.collect();
    let asked = query.container.as_deref().unwrap_or(default);
    match (&query.container, containers.iter().any(|name| name == asked), containers.first()) {
        (_, true, _) => Ok(asked.to_owned()),
        (None, false, Some(first)) => Ok(first.clone()),
        _ => Err(LogError::NoContainer { asked: asked.to_owned(), containers }),
    }
}

fn error(error: kube::Error) -> LogError {
    match &error {
        kube::Error::Api(status) if status.code == 403 => LogError::NotPermitted,
        kube::Error::Api(status) if status.code == 404 => LogError::NoPod,
        kube::Error::Api(status) if status.code == 400 => LogError::NoLog(status.message.clone()),
        _ => LogError::Cluster(KubernetesError::from_client("read the log of a pod", error)),
    }
}
