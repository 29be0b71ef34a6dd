//! The check of a target that the service did not make itself.

use jiff::Timestamp;

use super::KubernetesCredentials;
use crate::names::{NamespaceName, ObjectName};

/// The last check of a target: the service reaches the target's cluster, and has the permissions that labs need.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetCheck {
    /// The credentials that were checked. A target whose credentials have changed since counts as unchecked.
    pub credentials: KubernetesCredentials,
    /// The time of the check.
    pub at: Timestamp,
    /// The defect that was found.
    pub defect: Option<TargetDefect>,
}

/// The reason why no lab can run in a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetDefect {
    /// The Secret with the credentials does not exist.
    #[error("The Secret {0} with the credentials does not exist in the service's namespace.")]
    SecretNotFound(ObjectName),
    /// The contents of the Secret are no credentials.
    #[error("The credentials in the Secret {secret} cannot be used: {problem}.")]
    InvalidCredentials {
        /// The Secret with the credentials.
        secret: ObjectName,
        /// The reason in words.
        problem: String,
    },
    /// The API server does not know who sends these credentials.
    #[error(
        "The API server refuses the credentials in the Secret {0}; they have expired, or are of another cluster."
    )]
    Unauthorized(ObjectName),
    /// The namespace does not exist.
    #[error("The namespace {0} does not exist in the target's cluster.")]
    NamespaceNotFound(NamespaceName),
    /// The credentials do not permit what labs need.
    #[error(
        "The credentials lack permissions in the namespace {namespace}: {}; deploy/ENVIRONMENTS.md has the Role that \
         labs need.",
        missing.join(", ")
    )]
    MissingPermissions {
        /// The namespace of labs.
        namespace: NamespaceName,
        /// The missing permissions, such as `create pods`.
        missing: Vec<String>,
    },
    /// The cluster did not answer. This may pass by itself.
    #[error("The target's cluster does not answer: {0}.")]
    Unavailable(String),
}

impl TargetDefect {
    /// The reasons that pass only when somebody intervenes.
    const FINAL: [&str; 5] =
        ["SecretNotFound", "InvalidCredentials", "Unauthorized", "NamespaceNotFound", "MissingPermissions"];

    /// Returns the reason in `CamelCase`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::SecretNotFound(_) => "SecretNotFound",
            Self::InvalidCredentials { .. } => "InvalidCredentials",
            Self::Unauthorized(_) => "Unauthorized",
            Self::NamespaceNotFound(_) => "NamespaceNotFound",
            Self::MissingPermissions { .. } => "MissingPermissions",
            Self::Unavailable(_) => "ClusterUnavailable",
        }
    }

    /// Returns true if the defect passes only when somebody intervenes.
    pub fn is_final(&self) -> bool {
        Self::is_final_reason(self.reason())
    }

    /// Returns true if this is the reason of a defect that passes only when somebody intervenes.
    pub(super) fn is_final_reason(reason: &str) -> bool {
        Self::FINAL.contains(&reason)
    }
}
