//! The answer about a loaded policy.

use serde::Serialize;
use utoipa::ToSchema;

use crate::spawner::PolicyReport;

/// A loaded policy and its state.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Policy {
    /// The policy's name in the configuration.
    name: String,
    /// The title that the policy gives itself.
    title: String,
    /// The policy's own version.
    version: String,
    /// The policy's own description.
    description: String,
    /// The digest of the component: `sha256:` and 64 hexadecimal digits.
    digest: String,
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
}

impl From<PolicyReport> for Policy {
    fn from(report: PolicyReport) -> Self {
        Self {
            name: report.name,
            title: report.title,
            version: report.version,
            description: report.description,
            digest: report.digest,
            wit_version: report.wit_version,
            hooks: report.hooks,
            grants: report.grants,
            prepared: report.prepared,
            not_prepared: report.not_prepared,
            loaded_at: report.loaded_at.to_string(),
            last_error: report.last_error,
        }
    }
}
