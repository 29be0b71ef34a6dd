//! What can go wrong with the Kubernetes API.

use std::fmt;

use kube::core::Status;

/// Why the API server did not do what was asked, after all retries.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// No answer, or none in time.
    #[error("the Kubernetes API cannot be reached")]
    Unavailable(#[source] kube::Error),
    /// It answered no.
    #[error("the Kubernetes API refused to {action}: {message}")]
    Refused {
        /// What was asked, such as `apply Pod nb-ada`.
        action: String,
        /// Kubernetes' reason, such as `Forbidden` or `Invalid`.
        reason: String,
        /// Kubernetes' words.
        message: String,
    },
    /// What should be created exists, and its deletion does not come to an end.
    #[error("the cluster could not {action}: the old one is still being deleted")]
    StillBeingDeleted {
        /// What was asked.
        action: String,
    },
    /// What should be created exists, and belongs to somebody else.
    #[error("the {kind} {name} exists already and is not this lab's; it is left alone")]
    Taken {
        /// `Namespace` or `Pod`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// The operation was cancelled or its time was up.
    #[error("cancelled")]
    Cancelled,
    /// The answer cannot be understood.
    #[error("the Kubernetes API answered with something unexpected")]
    Unexpected(#[source] kube::Error),
    /// An object cannot be read or written as what it should be.
    #[error("an object is not of the expected form")]
    Malformed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl KubernetesError {
    /// Sorts an error of the client. `action` says what was asked.
    pub(super) fn from_client(action: &str, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused {
                action: action.to_owned(),
                reason: status.reason.clone(),
                message: status.message.clone(),
            },
            error @ (kube::Error::SerdeError(_)
            | kube::Error::BuildRequest(_)
            | kube::Error::HttpError(_)) => Self::Unexpected(error),
            error => Self::Unavailable(error),
        }
    }

    /// `CamelCase`, stable: the machine-readable reason of a failed operation.
    pub fn reason(&self) -> &str {
        match self {
            Self::Unavailable(_) => "ClusterUnavailable",
            Self::Refused { reason, .. } if reason.is_empty() => "ClusterRefused",
            Self::Refused { reason, .. } => reason,
            Self::StillBeingDeleted { .. } => "StillBeingDeleted",
            Self::Taken { kind: "Namespace", .. } => "NamespaceTaken",
            Self::Taken { .. } => "NameTaken",
            Self::Cancelled => "Cancelled",
            Self::Unexpected(_) | Self::Malformed(_) => "ClusterUnexpected",
        }
    }
}

/// True for a refusal that time may mend: load, a restart, a namespace that is still on its way out.
pub(super) fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => is_transient_status(status),
        kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => false,
        _ => true,
    }
}

fn is_transient_status(status: &Status) -> bool {
    let passing = match status.code {
        // A namespace on its way out; a new quota that its controller has not counted yet.
        403 => {
            ["being terminated", "status unknown for quota"].iter().any(|text| status.message.contains(text))
        }
        // Two objects at once that one quota counts.
        409 => status.message.contains("resourcequotas"),
        _ => false,
    };
    passing || matches!(status.code, 429 | 500 | 502 | 503 | 504)
}

/// An error with its causes on one line, for the log.
pub struct Causes<'a>(pub &'a dyn std::error::Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
