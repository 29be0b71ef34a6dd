//! The answer about a lab's log.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::values::log_lines::LogLines;
use wasmspawner_spawner::ShownLog;

/// The end of the log of one container.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Log {
    username: String,
    /// The name of the user's server; empty for the default server.
    server: String,
    /// The name of the pod.
    pod: String,
    /// The name of the container.
    container: String,
    /// True for the log of the run before the container's last restart.
    previous: bool,
    /// The last lines, oldest first. What is probably a credential is replaced by `<redacted>`.
    lines: Vec<String>,
    /// True if lines are missing that were asked for, or if a line was cut, because the log is too long.
    truncated: bool,
}

impl Log {
    pub(crate) fn new(key: &LabKey, previous: bool, log: ShownLog) -> Self {
        let ShownLog { pod, container, lines: LogLines { lines, truncated } } = log;
        Self {
            username: key.user.to_string(),
            server: key.server.to_string(),
            pod,
            container,
            previous,
            lines,
            truncated,
        }
    }
}
