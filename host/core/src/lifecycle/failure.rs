//! The failure of an operation.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::lifecycle::stage::Analysis;
use crate::values::word::word_or;

/// Who can remedy a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The user: other options would work.
    User,
    /// The policy: it returned an error or an unusable answer.
    Policy,
    /// The cluster: it could not do what was requested.
    Cluster,
    /// The service or its configuration.
    Service,
}

/// Why an operation failed, for programs and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The reason in `CamelCase`. It does not change between versions.
    pub reason: String,
    /// A sentence for the lab's user.
    pub message: String,
    /// Who can remedy it.
    #[serde(deserialize_with = "blame_or_service")]
    pub blame: Blame,
    /// The exit code of the program that ended, if that is the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

fn blame_or_service<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Blame, D::Error> {
    word_or(deserializer, Blame::Service)
}

impl Failure {
    /// Creates a failure of the cluster.
    pub fn cluster(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(reason, message, Blame::Cluster)
    }

    /// Creates a failure of the service itself.
    pub fn service(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(reason, message, Blame::Service)
    }

    /// Creates a failure that somebody can remedy.
    pub fn new(reason: impl Into<String>, message: impl Into<String>, blame: Blame) -> Self {
        Self { reason: reason.into(), message: message.into(), blame, exit_code: None }
    }

    /// Creates the failure that a pod's analysis has found.
    pub(super) fn from_analysis(analysis: &Analysis) -> Self {
        Self { exit_code: analysis.exit_code, ..Self::cluster(&analysis.reason, &analysis.message) }
    }
}
