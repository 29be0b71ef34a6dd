use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing wrong with one field: a key of the form, or a path into a configuration or an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldError {
    /// Which field. For options the bare key (`size`), for anything deeper a path (`env[3].name`).
    pub field: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl FieldError {
    /// An error of `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Why a hook gives no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum HookError {
    /// The user may not do this. The message is the policy's own and is shown to them.
    #[error("denied: {0}")]
    Denied(String),
    /// The request is at fault, field by field.
    #[error("the request is invalid in {} field(s)", .0.len())]
    Invalid(Vec<FieldError>),
    /// Not now; try again after so many seconds.
    #[error("try again in {0} s")]
    RetryLater(u32),
    /// The policy is at fault. For the log, never for the user.
    #[error("the policy failed: {0}")]
    Internal(String),
}
