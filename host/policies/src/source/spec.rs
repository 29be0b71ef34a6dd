use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use wasmspawner_core::config::{
    CandidateConfig, DataSource, HookName, OnFailure, PolicyConfig, PublicKeySource,
};
use wasmspawner_core::policy::Grants;

use super::component_source::ComponentSource;
use crate::errors::{LoadError, LoadErrorKind};
use crate::limits::Limits;
use crate::names::policy_name::PolicyName;
use crate::signature;
use wasmspawner_core::values::digest::Digest;

/// The configuration of one policy of the chain.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    /// The name, unique in the chain. It appears in logs, metrics and errors.
    pub name: PolicyName,
    /// The source of the component.
    pub source: ComponentSource,
    /// If set, a component with another digest is not loaded.
    pub digest: Option<Digest>,
    /// If set, a component that none of these keys has signed is not loaded.
    pub signed_by: Option<Vec<PublicKeySource>>,
    /// Hooks without which a component is not loaded.
    pub requires: BTreeSet<HookName>,
    /// The policy's own configuration, given to it as JSON.
    pub config: serde_json::Value,
    /// The sources of the data that the policy may read, by name.
    pub data: BTreeMap<String, DataSource>,
    /// The permissions of the policy beyond the default. The core checks them.
    pub grants: Grants,
    /// The reaction to a failure of the policy.
    pub on_failure: OnFailure,
    /// The limits of each call.
    pub limits: Limits,
    /// The candidate to replace the policy. It receives the same calls, and its answers are only compared.
    pub candidate: Option<Box<Self>>,
}

impl PolicySpec {
    /// Creates a policy from a file, with the default limits and without configuration, grants, digest, signature and
    /// required hooks.
    pub fn new(name: &str, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            source: ComponentSource::File(path.into()),
            digest: None,
            signed_by: None,
            requires: BTreeSet::new(),
            config: serde_json::Value::Object(serde_json::Map::new()),
            data: BTreeMap::new(),
            grants: Grants::default(),
            on_failure: OnFailure::default(),
            limits: Limits::default(),
            candidate: None,
        }
    }

    /// Returns the files, and folders of files, that the policy and its candidate are read from.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        if let ComponentSource::File(path) = &self.source {
            files.push(path.clone());
            // A signature often arrives after the signed file.
            files.extend(self.signed_by.iter().flat_map(|_| signature::signature_files(path)));
        }
        files.extend(self.data.values().filter_map(|source| match source {
            DataSource::File(path) => Some(path.clone()),
            DataSource::Document(_) => None,
        }));
        files.extend(self.signed_by.iter().flatten().filter_map(|key| match key {
            PublicKeySource::File(path) => Some(path.clone()),
            PublicKeySource::Pem(_) => None,
        }));
        files.extend(self.candidate.iter().flat_map(|candidate| candidate.files()));
        files
    }

    /// Returns the policies of a configuration, in order. Relative paths start at the working directory.
    ///
    /// # Errors
    ///
    /// If a digest or a reference is malformed, or a policy has no source.
    pub fn all(policies: &[PolicyConfig]) -> Result<Vec<Self>, LoadError> {
        policies.iter().cloned().map(Self::from_config).collect()
    }

    fn from_config(config: PolicyConfig) -> Result<Self, LoadError> {
        let name = PolicyName::from(config.name);
        let refused = |kind| LoadError { policy: name.clone(), kind };
        let digest = config.digest.as_deref().map(str::parse).transpose();
        let policy = Self {
            source: source(config.path, config.oci).map_err(refused)?,
            digest: digest.map_err(|error| refused(LoadErrorKind::Digest(error)))?,
            signed_by: config.signed_by,
            requires: config.requires,
            config: config.config.into(),
            data: config.data,
            grants: config.grants,
            on_failure: config.on_failure,
            limits: config.limits.into(),
            candidate: None,
            name: name.clone(),
        };
        let candidate = config.candidate.map(|candidate| policy.candidate(candidate)).transpose();
        Ok(Self { candidate: candidate.map_err(refused)?.map(Box::new), ..policy })
    }

    /// Creates the candidate. It takes from the policy all settings that it does not have itself.
    fn candidate(&self, config: CandidateConfig) -> Result<Self, LoadErrorKind> {
        let CandidateConfig { path, oci, digest, config, data } = config;
        let (source, digest) = match (path, oci) {
            (None, None) => (self.source.clone(), self.digest),
            (path, oci) => {
                let digest = digest.as_deref().map(str::parse).transpose();
                (source(path, oci)?, digest.map_err(LoadErrorKind::Digest)?)
            }
        };
        Ok(Self {
            name: PolicyName::from(format!("{} (candidate)", self.name)),
            source,
            digest,
            config: config.map_or_else(|| self.config.clone(), Into::into),
            data: data.unwrap_or_else(|| self.data.clone()),
            ..self.clone()
        })
    }
}

fn source(path: Option<PathBuf>, oci: Option<String>) -> Result<ComponentSource, LoadErrorKind> {
    match (path, oci) {
        (Some(path), None) => Ok(ComponentSource::File(path)),
        (None, Some(oci)) => match oci.parse() {
            Ok(reference) => Ok(ComponentSource::Registry(Box::new(reference))),
            Err(error) => Err(LoadErrorKind::Reference { text: oci, error }),
        },
        (None, None) | (Some(_), Some(_)) => Err(LoadErrorKind::NoSource),
    }
}
