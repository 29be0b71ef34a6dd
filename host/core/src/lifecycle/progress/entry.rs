//! Entries of an operation's log.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::percent;
use crate::lifecycle::Failure;
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

impl StageReport {
    /// Creates a report with its reason and message.
    pub fn new(stage: Stage, (reason, message): (&str, &str), progress: u8, at: Timestamp) -> Self {
        Self { stage, reason: reason.to_owned(), message: message.to_owned(), progress, at }
    }

    /// Describes the last stage of an operation that has failed.
    pub fn failed(failure: &Failure, at: Timestamp) -> Self {
        Self::new(Stage::Failed, (&failure.reason, &failure.message), percent(Stage::Failed), at)
    }

    /// Describes the last stage of a stop. `noun` names what has stopped.
    pub fn stopped(noun: &str, progress: u8, at: Timestamp) -> Self {
        Self::new(Stage::Stopped, ("Stopped", &format!("Your {noun} has stopped.")), progress, at)
    }
}
