//! The answer about a loaded policy.

use serde::Serialize;
use utoipa::ToSchema;

use wasmspawner_spawner::{CandidateReport, DataReport, LastGoodReport, LoadedPolicy};

/// A loaded policy and its state.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Policy {
    /// The policy's name in the configuration.
    name: String,
    /// The title that the policy gives itself.
    title: String,
    /// The policy's own version.
    version: String,
    /// The policy's own description.
    description: String,
    /// Where the component comes from: a file of the service, or the reference to an artifact in a registry.
    source: String,
    /// The digest of the component: `sha256:` and 64 hexadecimal digits.
    digest: String,
    /// The public key of whoever has signed the component, as the configuration names it; absent where it asks for no signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
    /// The version of the WIT package that the policy was built for.
    wit_version: String,
    /// The hooks that the policy implements: the interfaces it exports.
    hooks: Vec<String>,
    /// The permissions that the operator has granted to the policy.
    grants: Vec<String>,
    /// True if every call begins with a copy of the policy that has read its configuration.
    prepared: bool,
    /// Why not, if the policy exports `prepare`; null otherwise. It works without, and is slower.
    not_prepared: Option<String>,
    /// When it was loaded, RFC 3339.
    loaded_at: String,
    /// The last error of a call or a reload for which the policy itself was at fault; null when there was none.
    last_error: Option<String>,
    /// What it has of its data; absent where it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    data: Vec<PolicyData>,
    /// The version that was in use before, and answers where this one fails; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_good: Option<LastGood>,
    /// What may replace it, and how its answers compare; absent where there is no candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate: Option<Candidate>,
}

/// Data of the site that a policy reads.
#[derive(Debug, Serialize, ToSchema)]
struct PolicyData {
    /// The name under which the policy reads it.
    name: String,
    /// Differs where the content does.
    version: String,
    /// When it was read, RFC 3339.
    #[schema(format = DateTime)]
    read_at: String,
    /// Why it could not be read again since then, so that the policy still has what was read before; null otherwise.
    problem: Option<String>,
}

impl From<DataReport> for PolicyData {
    fn from(report: DataReport) -> Self {
        let DataReport { name, version, read_at, problem } = report;
        Self { name, version, read_at: read_at.to_string(), problem }
    }
}

/// A version of a policy that was in use before.
#[derive(Debug, Serialize, ToSchema)]
struct LastGood {
    /// The version's own number.
    version: String,
    /// The digest of its component.
    digest: String,
    /// The public key of whoever has signed it; absent where the configuration asks for no signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
    /// How often it has answered because the policy had failed.
    answers: u64,
}

impl From<LastGoodReport> for LastGood {
    fn from(report: LastGoodReport) -> Self {
        let LastGoodReport { version, digest, signed_by, answers } = report;
        Self { version, digest, signed_by, answers }
    }
}

/// The candidate of a policy, and how its answers compare with those of the policy since both were loaded.
#[derive(Debug, Serialize, ToSchema)]
struct Candidate {
    /// The digest of its component; null if it could not be loaded.
    digest: Option<String>,
    /// Why it could not be loaded; null otherwise.
    error: Option<String>,
    /// How many answers were the same.
    same: u64,
    /// How many answers were different; an error is an answer, too.
    different: u64,
    /// How many calls were not compared, because too much was asked at that moment.
    skipped: u64,
    /// The last calls with different answers, newest first; at most 50.
    last: Vec<DifferentAnswer>,
}

/// A call to which the candidate gave another answer.
#[derive(Debug, Serialize, ToSchema)]
struct DifferentAnswer {
    /// When it was asked, RFC 3339.
    #[schema(format = DateTime)]
    at: String,
    /// The hook, such as `quota.limits`.
    hook: &'static str,
    /// The places in the answer that differ, as JSON pointers. The values may be secret, and are not told.
    places: Vec<String>,
    /// What was asked, as input of `wasmspawner policy run` and `policy diff`.
    #[schema(value_type = Object)]
    input: serde_json::Value,
}

impl From<CandidateReport> for Candidate {
    fn from(report: CandidateReport) -> Self {
        let CandidateReport { digest, error, same, different, skipped, last } = report;
        let last = last.into_iter().map(|answer| DifferentAnswer {
            at: answer.at.to_string(),
            hook: answer.hook.name(),
            places: answer.places,
            input: answer.input,
        });
        Self { digest, error, same, different, skipped, last: last.collect() }
    }
}

impl From<LoadedPolicy> for Policy {
    fn from(loaded: LoadedPolicy) -> Self {
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
            grants: loaded.grants.into_iter().map(|grant| grant.to_string()).collect(),
            prepared: loaded.preparation.prepared,
            not_prepared: loaded.preparation.not_prepared,
            loaded_at: loaded.loaded_at.to_string(),
            last_error: loaded.last_error,
            data: loaded.data.into_iter().map(PolicyData::from).collect(),
            last_good: loaded.last_good.map(LastGood::from),
            candidate: loaded.candidate.map(Candidate::from),
        }
    }
}
