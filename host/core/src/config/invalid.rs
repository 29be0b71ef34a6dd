//! Why a setting is refused.

/// A setting that has the right shape and still cannot be worked with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct InvalidSetting {
    /// Path of the key: `auth.jupyterhub.api_url`.
    pub key: String,
    /// What is wrong, with the value, and what would be right.
    pub problem: String,
}

impl InvalidSetting {
    /// The setting at `key`, and what is wrong with it.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}
