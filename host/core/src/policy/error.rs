use serde::{Deserialize, Serialize};

use crate::field_error::FieldError;

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
