//! `registries`: how the service reads from container registries.

use std::path::PathBuf;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InvalidSetting, check_span};

/// How the service reads from container registries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RegistriesConfig {
    /// A file with credentials, as `docker login` writes it and as it is in a Secret of the type
    /// `kubernetes.io/dockerconfigjson`. Only the file's owner may have access to it (mode 0600). It is read again each
    /// time. Without it, registries are read anonymously.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_file: Option<PathBuf>,
    /// A PEM file with certificate authorities that are trusted in addition to the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Registries, as `host` or `host:port`, that are asked without TLS. They lead the service to these and to hosts with TLS only.
    pub plain_http: Vec<String>,
    /// How long one download may take; at most ten minutes.
    #[serde(deserialize_with = "crate::config::span::parse")]
    #[schemars(with = "String")]
    pub timeout: SignedDuration,
}

impl Default for RegistriesConfig {
    fn default() -> Self {
        Self {
            credentials_file: None,
            ca_file: None,
            plain_http: Vec::new(),
            timeout: SignedDuration::from_secs(60),
        }
    }
}

impl RegistriesConfig {
    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        let url = |registry: &&String| registry.contains("://") || registry.contains('/');
        if let Some(registry) = self.plain_http.iter().find(url) {
            let message = format!("{registry:?} is not a registry; write `host` or `host:port`");
            return Err(InvalidSetting::new("registries.plain_http", message));
        }
        check_span("registries.timeout", self.timeout, SignedDuration::from_mins(10))
    }
}
