use std::fmt;

use serde::{Deserialize, Serialize};

/// An error in one field: a key of the form, or a path into a configuration or an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldError {
    /// The field: for options the key (`size`), for anything nested a path (`env[3].name`).
    pub field: String,
    /// What is wrong and what would be accepted.
    pub message: String,
}

impl FieldError {
    /// An error in `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Why a hook returned no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum HookError {
    /// The user may not do this. The policy's message is shown to them.
    #[error("denied: {0}")]
    Denied(String),
    /// The request is invalid, field by field.
    #[error("the request is invalid in {} field(s)", .0.len())]
    Invalid(Vec<FieldError>),
    /// Try again after this number of seconds.
    #[error("try again in {0} s")]
    RetryLater(u32),
    /// The policy itself failed. The message is logged and never shown to the user.
    #[error("the policy failed: {0}")]
    Internal(String),
}
