//! One thing that happened in an operation.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stage::Stage;

/// An entry of an operation's log: the event types of seed 000 plus `stage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "lowercase")]
pub enum Entry {
    /// Something was done, or a stage ended.
    Info(String),
    /// Something went wrong; the operation may still succeed.
    Error(String),
    /// How far the operation is, 0 to 100.
    Progress(u8),
    /// The operation entered a stage.
    Stage(StageReport),
    /// The operation succeeded. Always the last entry.
    Complete(String),
    /// The operation failed. Always the last entry.
    Failed(String),
}

impl Entry {
    /// True for the entry that ends an operation.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Complete(_) | Self::Failed(_))
    }
}

/// The machine-readable account of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageReport {
    /// The stage entered.
    pub stage: Stage,
    /// Why, in `CamelCase`, stable for programs.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// Progress at this moment, 0 to 100.
    pub progress: u8,
    /// When.
    #[schemars(with = "String")]
    pub at: Timestamp,
}
