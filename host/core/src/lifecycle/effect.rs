//! The consequences of a step, besides the next state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Failure, Operation};
use crate::lifecycle::progress::Entry;

/// One consequence of a step, to be carried out in the order given. Requests that take time are not effects; see
/// [`super::plan`].
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start the log and the history of a new operation.
    Begin(Operation),
    /// Append to the operation's log.
    Publish(Entry),
    /// Close the operation's history.
    Finish(Outcome),
    /// The lab ended by itself: begin a cleanup operation, with `Event::CleanupBegun`.
    Cleanup(Ending),
    /// Count the namespace that was kept among the objects to delete from now on.
    GiveUpNamespace,
    /// Record durably that this user has had a lab that became ready.
    MarkProvisioned,
    /// Count this many more restarts of the running lab's containers.
    Restarted(u32),
}

/// The way in which a running lab ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The lab shut down or was deleted by somebody else; the text is a sentence that says which.
    Gone(String),
    /// The lab failed.
    Crashed(Failure),
}

/// How an operation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It did what was requested.
    Complete,
    /// It failed.
    Failed(Failure),
    /// A stop cancelled it.
    Cancelled,
}
