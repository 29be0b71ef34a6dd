//! Why an operation failed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who has to do something about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The user: another choice would work.
    User,
    /// The policy: its answer was refused, or it gave none.
    Policy,
    /// The cluster: it could not do what it was asked.
    Cluster,
    /// The service or its configuration.
    Service,
}

/// Why an operation failed, for programs and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// `CamelCase`, stable.
    pub reason: String,
    /// A sentence that the lab's user understands.
    pub message: String,
    /// Whose it is to mend.
    pub blame: Blame,
}

impl Failure {
    /// A failure of the cluster.
    pub fn cluster(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), blame: Blame::Cluster }
    }

    /// A failure of the service itself.
    pub fn service(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), blame: Blame::Service }
    }
}
