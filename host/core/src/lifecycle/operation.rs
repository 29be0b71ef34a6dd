//! An operation on a lab.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lab::JobId;

/// An operation on a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Its id.
    pub job_id: JobId,
    /// What it does.
    pub kind: OperationKind,
    /// When it began.
    pub started_at: Timestamp,
    /// When it has taken too long.
    pub deadline: Timestamp,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OperationKind {
    /// Starts a lab.
    Spawn,
    /// Stops it because someone asked.
    Stop,
    /// Removes what is left of a lab that ended by itself.
    #[serde(alias = "reap")] // The name of versions before 0.1.
    Cleanup,
}

/// How long operations may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// A spawn, everything included.
    pub spawn: SignedDuration,
    /// A deletion, counted from its last progress.
    pub delete: SignedDuration,
}

impl TimeLimits {
    /// An operation that begins at `now`.
    pub fn operation(&self, job_id: JobId, kind: OperationKind, now: Timestamp) -> Operation {
        let limit = match kind {
            OperationKind::Spawn => self.spawn,
            OperationKind::Stop | OperationKind::Cleanup => self.delete,
        };
        Operation { job_id, kind, started_at: now, deadline: after(now, limit) }
    }
}

/// The moment after a span; the end of time where that is later.
pub(super) fn after(now: Timestamp, span: SignedDuration) -> Timestamp {
    now.checked_add(span).unwrap_or(Timestamp::MAX)
}
