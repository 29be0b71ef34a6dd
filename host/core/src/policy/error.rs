use serde::{Deserialize, Serialize};

use crate::field_error::FieldError;

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
