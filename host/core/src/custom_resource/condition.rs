//! Conditions of custom resources.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A condition in Kubernetes' form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about: `Ready`, or `ErrorOccurred`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` or `False`.
    pub status: String,
    /// The reason in `CamelCase`.
    pub reason: String,
    /// The reason in words.
    pub message: String,
    /// When the status last changed, RFC 3339.
    #[schemars(with = "String")]
    pub last_transition_time: Timestamp,
}
