//! Entries of an operation's log.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lifecycle::stage::Stage;

/// An entry of an operation's log: the event types of SQR-066, and `stage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "lowercase")]
pub enum Entry {
    /// An action completed, or a stage ended.
    Info(String),
    /// Something failed; the operation may still succeed.
    Error(String),
    /// Progress of the operation in percent, 0 to 100.
    Progress(u8),
    /// The operation entered a stage.
    Stage(StageReport),
    /// The operation succeeded. Always the last entry.
    Complete(String),
    /// The operation failed. Always the last entry.
    Failed(String),
}

impl Entry {
    /// Returns true for the entry that ends an operation.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Complete(_) | Self::Failed(_))
    }
}

/// The machine-readable description of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageReport {
    /// The stage entered.
    pub stage: Stage,
    /// The reason in `CamelCase`. It does not change between versions.
    pub reason: String,
    /// The reason in words.
    pub message: String,
    /// Progress of the operation in percent, 0 to 100.
    pub progress: u8,
    /// When the stage was entered.
    #[schemars(with = "String")]
    pub at: Timestamp,
}
