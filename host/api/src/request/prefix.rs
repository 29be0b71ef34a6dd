//! The path prefix of the API.

use std::sync::Arc;

use wasmspawner_core::config::HttpConfig;

/// A path prefix such as `/spawner/v1`. It begins with a slash and does not end with one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(Arc<str>);

impl Prefix {
    /// Returns the prefix of a checked configuration.
    pub fn from_config(config: &HttpConfig) -> Self {
        Self(config.prefix.as_str().into())
    }

    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The path prefix of the dialect of Nublado, such as `/nublado`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NubladoPrefix(Prefix);

impl NubladoPrefix {
    /// Returns the prefix of a checked configuration, whether the dialect is served or not.
    pub fn from_config(config: &HttpConfig) -> Self {
        Self(Prefix(config.nublado_prefix.as_str().into()))
    }

    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}
