//! Errors in settings.

/// A setting whose value has the right type but cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct InvalidSetting {
    /// Path of the key: `auth.jupyterhub.api_url`.
    pub key: String,
    /// What is wrong, with the value, and what would be accepted.
    pub problem: String,
}

impl InvalidSetting {
    /// An error about the setting at `key`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}
