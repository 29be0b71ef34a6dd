//! What a step says beside the next state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Failure, Operation};
use crate::progress::Entry;

/// One consequence of a step, to be carried out in the order given. Work that takes time is not among them: see
/// [`super::plan`].
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start the log and the history of a new operation.
    Begin(Operation),
    /// Append to the operation's log.
    Publish(Entry),
    /// Close the operation's history.
    Finish(Outcome),
    /// The lab ended by itself: begin an operation for that, with `Event::CleanupBegun`.
    Cleanup(Ending),
    /// Remember durably that this user has had a lab.
    MarkProvisioned,
    /// So many restarts of a running lab's containers were seen.
    Restarted(u32),
}

/// How a running lab ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It shut down or was taken away; a sentence says which.
    Gone(String),
    /// It failed.
    Crashed(Failure),
}

/// How an operation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// As asked.
    Complete,
    /// Not as asked.
    Failed(Failure),
    /// A stop came first.
    Cancelled,
}
