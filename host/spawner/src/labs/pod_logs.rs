//! The logs of labs, and of the pods that labs start.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use wasmspawner_core::names::Username;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::values::log_lines::LogLines;

use super::Labs;
use crate::errors::{SpawnError, failure};
use wasmspawner_kubernetes::k8s::{LogError, LogQuery, LogText, PodLogs, on_behalf_of};
use wasmspawner_tasks::per_key::PerKey;

/// The time within which a log is read, with the wait for earlier requests.
const WITHIN: Duration = Duration::from_secs(10);

/// The number of logs that are read at the same time: one of each user, and this many of all.
const AT_ONCE: usize = 4;

/// The end of a log, as people may read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLog {
    /// The name of the pod.
    pub pod: String,
    /// The name of the container.
    pub container: String,
    /// The lines.
    pub lines: LogLines,
}

/// The reason why there is no log to show.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// The service does not know the labs, there is no lab, or the cluster does not answer.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The lab is in a workload, whose pods have other logs, too.
    #[error("the lab is in a workload; read the logs of the workload's pods in the cluster")]
    InWorkload,
    /// The log cannot be read.
    #[error(transparent)]
    Log(LogError),
}

/// Limits how many logs are read at the same time.
pub(crate) struct LogReaders {
    of_user: PerKey<Username>,
    all: Arc<Semaphore>,
}

impl Default for LogReaders {
    fn default() -> Self {
        Self { of_user: PerKey::one(), all: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Labs {
    /// Reads the end of a log of a lab, or of a pod that a lab has started.
    pub async fn logs(&self, key: &SpawnKey, query: &LogQuery) -> Result<ShownLog, LogsError> {
        let read = on_behalf_of(key.lab.user.clone(), self.read_log(key, query));
        tokio::time::timeout(WITHIN, read).await.unwrap_or(Err(LogsError::Spawn(SpawnError::NoTime)))
    }

    async fn read_log(&self, key: &SpawnKey, query: &LogQuery) -> Result<ShownLog, LogsError> {
        self.require_ready()?;
        let view = self.view(key).filter(|view| view.snapshot.is_some()).ok_or(SpawnError::NoLab)?;
        let (Some(place), Some(spawn)) = (view.place, view.record) else {
            return Err(LogsError::Log(LogError::NoPod));
        };
        if place.kind.workload().is_some() {
            return Err(LogsError::InWorkload);
        }
        let _turn = self.log_readers.of_user.take(&key.lab.user).await;
        let _place = self.log_readers.all.acquire().await;
        let context = self.context();
        let logs = PodLogs::new(context.cluster(&place).connection.requests.clone());
        let container = context.config.current().lab.section.container.to_string();
        let read = logs.read(&place, &spawn, &container, query).await;
        let LogText { pod, container, text, cut_off } = read.map_err(|error| match error {
            LogError::Cluster(error) => LogsError::Spawn(SpawnError::Cluster(failure(&error))),
            error => LogsError::Log(error),
        })?;
        let count = query.lines.into();
        // Looking for credentials in a long log takes longer than other tasks may wait.
        let lines = tokio::task::spawn_blocking(move || LogLines::last(&text, count, cut_off)).await;
        Ok(ShownLog { pod, container, lines: lines.map_err(|_| SpawnError::NotReady)? })
    }
}
