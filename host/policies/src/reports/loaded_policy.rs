//! Descriptions of loaded policies.

use wasmspawner_core::policy::Grant;
use wasmspawner_core::values::digest::Digest;

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
    /// The source of the component: a file, or the reference to an artifact in a registry.
    pub source: String,
    /// The digest of the component.
    pub digest: Digest,
    /// The public key that signed the component, as the configuration names it, if a signature is required.
    pub signed_by: Option<String>,
    /// The version of the WIT package that the policy was built for.
    pub wit_version: String,
    /// The hooks that the policy implements, as the interfaces that it exports.
    pub hooks: Vec<&'static str>,
    /// The kinds of permissions that the operator has granted to the policy.
    pub grants: Vec<Grant>,
    /// The preparation of the policy for its calls.
    pub preparation: Preparation,
    /// The time at which the policy was loaded.
    pub loaded_at: jiff::Timestamp,
    /// The last error for which the policy was at fault: of a call, or of a reload after which this version was kept.
    pub last_error: Option<String>,
    /// The state of the policy's data.
    pub data: Vec<DataReport>,
    /// The version that answers if the policy fails, if there is one.
    pub last_good: Option<LastGoodReport>,
    /// The comparison with the policy's candidate, if it has one.
    pub candidate: Option<CandidateReport>,
}

/// The preparation of a policy. Calls of a prepared policy begin with the memory that the policy has after `prepare`.
#[derive(Clone, Debug, Default)]
pub struct Preparation {
    /// True if calls begin with the prepared memory.
    pub prepared: bool,
    /// The reason that they do not, if the policy exports `prepare`.
    pub not_prepared: Option<String>,
}

/// An earlier version of a policy, for the log and `GET /policies`.
#[derive(Clone, Debug)]
pub struct LastGoodReport {
    /// The version's own number.
    pub version: String,
    /// The digest of its component.
    pub digest: String,
    /// The public key that signed the component, if a signature is required.
    pub signed_by: Option<String>,
    /// The number of answers that this version gave because the policy failed.
    pub answers: u64,
}
