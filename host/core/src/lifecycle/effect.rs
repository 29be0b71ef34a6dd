//! What the driver is told to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Failure, Operation};
use crate::progress::Entry;

/// One thing to do. Effects are carried out in the order given; what takes time comes back as an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start the log and the history record of a new operation.
    Begin(Operation),
    /// Append to the operation's log.
    Publish(Entry),
    /// Close the operation's history record.
    Finish(Outcome),
    /// Ask the policies; answer with `Event::Decided`.
    EvaluatePolicy,
    /// Forget a policy evaluation that is under way.
    CancelPolicy,
    /// Create the lab's objects, pod last; answer with `Event::Applied`.
    Apply,
    /// Stop creating as soon as possible; `Event::Applied` comes all the same.
    CancelApply,
    /// Delete the pod; answer with `Event::DeleteRefused` only when that fails.
    DeletePod,
    /// Delete everything else; answer with `Event::DeleteRefused` only when that fails.
    DeleteRest,
    /// The lab ended by itself: begin an operation for that, with `Event::ReapBegun`.
    Reap(Ending),
    /// Remember durably that this user has had a lab.
    MarkProvisioned,
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
