use crate::values::field_error::FieldError;

use super::denial::Denial;

/// The reason why a hook returned no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// The user may not do this.
    #[error("denied: {0}")]
    Denied(Denial),
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
