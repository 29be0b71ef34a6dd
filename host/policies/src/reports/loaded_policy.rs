//! What is told of a loaded policy.

use wasmspawner_core::digest::Digest;
use wasmspawner_core::policy::Grant;

use super::candidate_report::CandidateReport;
use crate::names::policy_name::PolicyName;
use crate::site_data::DataReport;

/// A policy of the chain, for the log and `GET /policies`.
#[derive(Clone, Debug)]
pub struct LoadedPolicy {
    /// The policy's name in the configuration.
    pub name: PolicyName,
    /// The title that the policy gives itself.
    pub title: String,
    /// The policy's own version.
    pub version: String,
    /// The policy's own description.
    pub description: String,
    /// Where the component comes from: a file, or the reference to an artifact in a registry.
    pub source: String,
    /// The digest of the component.
    pub digest: Digest,
    /// The public key of whoever has signed the component, as the configuration names it, if a signature is asked for.
    pub signed_by: Option<String>,
    /// The version of the WIT package that the policy was built for.
    pub wit_version: String,
    /// The hooks that the policy implements: the interfaces it exports.
    pub hooks: Vec<&'static str>,
    /// The kinds of permissions that its operator has granted to it.
    pub grants: Vec<Grant>,
    /// Whether calls begin with a prepared copy of the policy.
    pub preparation: Preparation,
    /// When the policy was loaded.
    pub loaded_at: jiff::Timestamp,
    /// The last error for which the policy was at fault: of a call, or of a reload after which this version was kept.
    pub last_error: Option<String>,
    /// What it has of its data.
    pub data: Vec<DataReport>,
    /// The version that answers where it fails, if there is one.
    pub last_good: Option<LastGoodReport>,
    /// How the answers of its candidate compare with its own, if it has one.
    pub candidate: Option<CandidateReport>,
}

/// Whether calls begin with the memory that the policy has after `prepare`.
#[derive(Clone, Debug, Default)]
pub struct Preparation {
    /// True if they do.
    pub prepared: bool,
    /// Why not, if the policy exports `prepare`.
    pub not_prepared: Option<String>,
}

/// An earlier version of a policy, for the log and `GET /policies`.
#[derive(Clone, Debug)]
pub struct LastGoodReport {
    /// The version's own number.
    pub version: String,
    /// The digest of its component.
    pub digest: String,
    /// The public key of whoever has signed it, if a signature is asked for.
    pub signed_by: Option<String>,
    /// How often it has answered because the policy had failed.
    pub answers: u64,
}
