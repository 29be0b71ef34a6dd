use std::path::PathBuf;

use wasmspawner_core::config::{OnFailure, PolicyConfig};
use wasmspawner_core::policy::Grants;

use super::digest::Digest;
use super::errors::{LoadError, LoadErrorKind};
use super::limits::Limits;
use super::policy_name::PolicyName;

/// The configuration of one policy of the chain.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    /// The name, unique in the chain. It appears in logs, metrics and errors.
    pub name: PolicyName,
    /// The component's file, or a directory that contains exactly one `*.wasm`.
    pub path: PathBuf,
    /// If set, a file with another digest is not loaded.
    pub digest: Option<Digest>,
    /// The policy's own configuration, given to it as JSON.
    pub config: serde_json::Value,
    /// What the policy may ask for beyond the default. The core checks this.
    pub grants: Grants,
    /// What happens when it fails.
    pub on_failure: OnFailure,
    /// The limits of each call.
    pub limits: Limits,
}

impl PolicySpec {
    /// A policy with the default limits and without configuration, grants and digest.
    pub fn new(name: &str, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            digest: None,
            config: serde_json::Value::Object(serde_json::Map::new()),
            grants: Grants::default(),
            on_failure: OnFailure::default(),
            limits: Limits::default(),
        }
    }

    /// The policies of a configuration, in order. Relative paths start at the working directory.
    ///
    /// # Errors
    ///
    /// If a digest is malformed.
    pub fn all(policies: &[PolicyConfig]) -> Result<Vec<Self>, LoadError> {
        policies.iter().cloned().map(Self::from_config).collect()
    }

    fn from_config(config: PolicyConfig) -> Result<Self, LoadError> {
        let name = PolicyName::from(config.name);
        let refused = |error| LoadError { policy: name.clone(), kind: LoadErrorKind::Digest(error) };
        Ok(Self {
            path: config.path,
            digest: config.digest.as_deref().map(str::parse).transpose().map_err(refused)?,
            config: config.config.into(),
            grants: config.grants,
            on_failure: config.on_failure,
            limits: config.limits.into(),
            name,
        })
    }
}
