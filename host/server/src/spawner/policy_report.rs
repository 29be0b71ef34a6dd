//! A loaded policy as the API shows it.

use jiff::Timestamp;

use super::context::Context;
use crate::wasm::LoadedPolicy;

/// A loaded policy, and how it is doing.
#[derive(Debug, Clone)]
pub struct PolicyReport {
    /// The operator's name for it.
    pub name: String,
    /// What it calls itself.
    pub title: String,
    /// Its own version.
    pub version: String,
    /// Its own description.
    pub description: String,
    /// Digest of the component: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The WIT package it was built for.
    pub wit_version: String,
    /// What it decides: the interfaces it exports.
    pub hooks: Vec<String>,
    /// What the operator allows it beyond the ordinary.
    pub grants: Vec<String>,
    /// When it went live.
    pub loaded_at: Timestamp,
    /// The last failure that was the policy's own fault, of a call or of a reload.
    pub last_error: Option<String>,
}

impl PolicyReport {
    pub(super) fn new(loaded: LoadedPolicy, context: &Context) -> Self {
        let grants = context.grants(loaded.name.as_str()).given();
        Self {
            name: loaded.name.to_string(),
            title: loaded.title,
            version: loaded.version,
            description: loaded.description,
            digest: loaded.digest.to_string(),
            wit_version: loaded.wit_version.to_owned(),
            hooks: loaded.hooks.into_iter().map(str::to_owned).collect(),
            grants: grants.iter().map(ToString::to_string).collect(),
            loaded_at: loaded.loaded_at,
            last_error: loaded.last_error,
        }
    }
}
