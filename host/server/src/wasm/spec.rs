use std::path::{Path, PathBuf};

use wasmspawner_core::config::{OnFailure, PolicyConfig};
use wasmspawner_core::policy::Grants;

use super::digest::Digest;
use super::errors::{LoadError, LoadErrorKind};
use super::limits::Limits;
use super::policy_name::PolicyName;

/// One policy of the chain, as the operator configures it.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    /// Unique in the chain; appears in logs, metrics and errors.
    pub name: PolicyName,
    /// A component, or a directory that holds exactly one `*.wasm`.
    pub path: PathBuf,
    /// Refuses any other file.
    pub digest: Option<Digest>,
    /// Handed to the policy as JSON.
    pub config: serde_json::Value,
    /// What the policy may ask for beyond the default. Checked by the core, not here.
    pub grants: Grants,
    /// What happens when it fails.
    pub on_failure: OnFailure,
    /// Limits of each call.
    pub limits: Limits,
}

impl PolicySpec {
    /// A policy without configuration, grants and pin, with the default limits.
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

    /// A policy as the configuration file has it; relative paths start at `base`.
    ///
    /// # Errors
    /// When the digest is none.
    pub fn from_config(config: PolicyConfig, base: &Path) -> Result<Self, LoadError> {
        let name = PolicyName::from(config.name);
        let refused = |error| LoadError { policy: name.clone(), kind: LoadErrorKind::Digest(error) };
        Ok(Self {
            path: base.join(config.path),
            digest: config.digest.as_deref().map(str::parse).transpose().map_err(refused)?,
            config: config.config.into(),
            grants: config.grants,
            on_failure: config.on_failure,
            limits: config.limits.into(),
            name,
        })
    }
}
