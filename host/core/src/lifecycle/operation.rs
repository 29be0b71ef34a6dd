//! Operations on labs, and their time limits.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::lab::JobId;

/// A spawn, a stop or a cleanup of one lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The operation's id.
    pub job_id: JobId,
    /// The kind of the operation.
    pub kind: OperationKind,
    /// The time at which the operation began.
    pub started_at: Timestamp,
    /// The end of the operation's time limit.
    pub deadline: Timestamp,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OperationKind {
    /// Starts a lab.
    Spawn,
    /// Stops a lab on request.
    Stop,
    /// Deletes the remaining objects of a lab that ended by itself.
    #[serde(alias = "reap")] // The name of versions before 0.1.
    Cleanup,
}

/// The time limits of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// The time limit of a whole spawn.
    pub spawn: SignedDuration,
    /// The time limit of a deletion, counted from its last progress.
    pub delete: SignedDuration,
}

impl TimeLimits {
    /// Creates an operation that begins at `now`.
    pub fn operation(&self, job_id: JobId, kind: OperationKind, now: Timestamp) -> Operation {
        let limit = match kind {
            OperationKind::Spawn => self.spawn,
            OperationKind::Stop | OperationKind::Cleanup => self.delete,
        };
        Operation { job_id, kind, started_at: now, deadline: after(now, limit) }
    }
}

/// Adds a duration to a time; saturates at the largest timestamp.
pub(super) fn after(now: Timestamp, span: SignedDuration) -> Timestamp {
    now.checked_add(span).unwrap_or(Timestamp::MAX)
}
