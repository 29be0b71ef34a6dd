//! The failure of an operation.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

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
}

fn blame_or_service<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Blame, D::Error> {
    word_or(deserializer, Blame::Service)
}

impl Failure {
    /// Creates a failure of the cluster.
    pub fn cluster(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), blame: Blame::Cluster }
    }

    /// Creates a failure of the service itself.
    pub fn service(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), blame: Blame::Service }
    }
}
