//! An error in one field.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An error in one field: a key of the form, or a path into a configuration or an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldError {
    /// The field: the key of an option (`size`), or a path for anything nested (`env[3].name`).
    pub field: String,
    /// The problem, and the values that would be accepted.
    pub message: String,
}

impl FieldError {
    /// Creates an error in `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}
