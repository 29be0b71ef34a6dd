//! The state of a loaded policy, for the API.

use jiff::Timestamp;

use super::context::Context;
use crate::wasm::{CandidateReport, DataReport, LastGoodReport, LoadedPolicy};

/// A loaded policy and its state.
#[derive(Debug, Clone)]
pub struct PolicyReport {
    /// The policy's name in the configuration.
    pub name: String,
    /// The title that the policy gives itself.
    pub title: String,
    /// The policy's own version.
    pub version: String,
    /// The policy's own description.
    pub description: String,
    /// Where the component comes from: a file, or the reference to an artifact in a registry.
    pub source: String,
    /// The digest of the component: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The public key of whoever has signed the component, if the configuration asks for a signature.
    pub signed_by: Option<String>,
    /// The version of the WIT package that the policy was built for.
    pub wit_version: String,
    /// The hooks that the policy implements: the interfaces it exports.
    pub hooks: Vec<String>,
    /// The permissions that the operator has granted to the policy.
    pub grants: Vec<String>,
    /// Whether calls begin with a prepared copy of the policy.
    pub prepared: bool,
    /// Why not, if the policy offers that.
    pub not_prepared: Option<String>,
    /// When the policy was loaded.
    pub loaded_at: Timestamp,
    /// The last error of a call or a reload for which the policy itself was at fault.
    pub last_error: Option<String>,
    /// What it has of its data.
    pub data: Vec<DataReport>,
    /// The version that answers where it fails, if there is one.
    pub last_good: Option<LastGoodReport>,
    /// How the answers of its candidate compare with its own, if it has one.
    pub candidate: Option<CandidateReport>,
}

impl PolicyReport {
    pub(super) fn new(loaded: LoadedPolicy, context: &Context) -> Self {
        let grants = context.grants(loaded.name.as_str()).given();
        Self {
            name: loaded.name.to_string(),
            title: loaded.title,
            version: loaded.version,
            description: loaded.description,
            source: loaded.source,
            digest: loaded.digest.to_string(),
            signed_by: loaded.signed_by,
            wit_version: loaded.wit_version,
            hooks: loaded.hooks.into_iter().map(str::to_owned).collect(),
            grants: grants.iter().map(ToString::to_string).collect(),
            prepared: loaded.preparation.prepared,
            not_prepared: loaded.preparation.not_prepared,
            loaded_at: loaded.loaded_at,
            last_error: loaded.last_error,
            data: loaded.data,
            last_good: loaded.last_good,
            candidate: loaded.candidate,
        }
    }
}
