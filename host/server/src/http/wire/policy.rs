//! A loaded policy.

use serde::Serialize;
use utoipa::ToSchema;

use crate::spawner::PolicyReport;

/// A policy, and how it is doing.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Policy {
    /// The operator's name for it.
    name: String,
    /// What it calls itself.
    title: String,
    /// Its own version.
    version: String,
    /// Its own description.
    description: String,
    /// Digest of the component: `sha256:` and 64 hexadecimal digits.
    digest: String,
    /// The WIT package it was built for.
    wit_version: String,
    /// What it decides: the interfaces it exports.
    hooks: Vec<String>,
    /// What the operator allows it beyond the ordinary.
    grants: Vec<String>,
    /// When it went live, RFC 3339.
    loaded_at: String,
    /// The last failure that was the policy's own fault, of a call or of a reload; null when there was none.
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
            loaded_at: report.loaded_at.to_string(),
            last_error: report.last_error,
        }
    }
}
