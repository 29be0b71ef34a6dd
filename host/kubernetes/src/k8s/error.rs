//! Errors of the Kubernetes API.

use std::fmt;

use kube::core::Status;
use kube::core::response::reason;

use super::status_reason::StatusReason;
use crate::watches::UnreadableObject;
use wasmspawner_core::lifecycle::claim_still_being_deleted;

/// The failure of a request to the API server, after all retries.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// The API server did not answer, or not in time.
    #[error("the Kubernetes API cannot be reached")]
    Unavailable(#[source] kube::Error),
    /// The API server refused the request.
    #[error("the Kubernetes API refused to {action}: {message}")]
    Refused {
        /// The requested action, such as `create Pod nb-ada`.
        action: String,
        /// The reason that Kubernetes gives.
        reason: StatusReason,
        /// The message that Kubernetes gives.
        message: String,
    },
    /// The object to create exists already, and its deletion does not finish in time.
    #[error("the cluster could not {action}: the old one is still being deleted")]
    StillBeingDeleted {
        /// The requested action.
        action: String,
    },
    /// A volume claim of the lab's exists already, and its deletion does not finish in time.
    #[error("{}", claim_still_being_deleted(name, kept_by.as_deref()))]
    ClaimBeingDeleted {
        /// The name of the claim.
        name: String,
        /// What keeps the claim, if that is known.
        kept_by: Option<String>,
    },
    /// The object to create exists already and belongs to somebody else.
    #[error("the {kind} {name} exists already and is not this lab's; it is left alone")]
    Taken {
        /// The kind of the object, such as `Namespace` or `Pod`.
        kind: &'static str,
        /// The name of the object.
        name: String,
    },
    /// A namespace for labs was made by somebody else.
    #[error(
        "the namespace {name} exists already and was not made by this service, so labs could be read there; an \
         administrator removes it, or lists it under kubernetes.existing_namespaces if it was made for labs"
    )]
    ForeignNamespace {
        /// The name of the namespace.
        name: String,
    },
    /// The cluster does not know the kind of an object.
    #[error("the cluster has no kind {kind} of the API group {group}; install what brings it")]
    NoSuchKind {
        /// The kind, such as `Certificate`.
        kind: &'static str,
        /// Its API group, such as `cert-manager.io`.
        group: &'static str,
    },
    /// A volume claim that the lab would use belongs to another user.
    #[error("the PersistentVolumeClaim {name} belongs to the user {owner}")]
    ClaimOfAnother {
        /// The name of the claim.
        name: String,
        /// The user in its annotation.
        owner: String,
    },
    /// Kubernetes has not filled the Secret of an account.
    #[error(
        "Kubernetes has not put a token into the Secret {name}; does its controller manager run with the key of the service accounts?"
    )]
    NotFilled {
        /// Namespace and name of the Secret.
        name: String,
    },
    /// The operation was cancelled, or its time was over.
    #[error("cancelled")]
    Cancelled,
    /// The answer cannot be parsed.
    #[error("the Kubernetes API answered with something unexpected")]
    Unexpected(#[source] kube::Error),
    /// An object does not have the form that its kind should have.
    #[error("an object is not of the expected form")]
    Malformed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<UnreadableObject> for KubernetesError {
    fn from(error: UnreadableObject) -> Self {
        Self::Malformed(Box::new(error))
    }
}

impl KubernetesError {
    /// Classifies an error of the client. `action` describes the request.
    pub(super) fn from_client(action: &str, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused {
                action: action.to_owned(),
                reason: status.reason.clone().into(),
                message: shortened(&status.message),
            },
            error @ (kube::Error::SerdeError(_)
            | kube::Error::BuildRequest(_)
            | kube::Error::HttpError(_)) => Self::Unexpected(error),
            error => Self::Unavailable(error),
        }
    }

    /// The machine-readable reason of a failed operation, in `CamelCase`. It does not change between versions.
    pub fn reason(&self) -> &str {
        match self {
            Self::Unavailable(_) => "ClusterUnavailable",
            Self::Refused { reason: StatusReason::Unknown, .. } => "ClusterRefused",
            Self::Refused { reason, .. } => reason.as_str(),
            Self::StillBeingDeleted { .. } | Self::ClaimBeingDeleted { .. } => "StillBeingDeleted",
            Self::Taken { kind: "Namespace", .. } | Self::ForeignNamespace { .. } => "NamespaceTaken",
            Self::Taken { .. } => "NameTaken",
            Self::NoSuchKind { .. } => "NoSuchKind",
            Self::ClaimOfAnother { .. } => "VolumeOfAnotherUser",
            Self::NotFilled { .. } => "NoToken",
            Self::Cancelled => "Cancelled",
            Self::Unexpected(_) | Self::Malformed(_) => "ClusterUnexpected",
        }
    }
}

/// The length in bytes to which messages of the API server are shortened. A message repeats the value that it refuses,
/// however large that is.
const MAX_MESSAGE: usize = 2000;

fn shortened(message: &str) -> String {
    let end = message.floor_char_boundary(MAX_MESSAGE);
    if end == message.len() { message.to_owned() } else { format!("{} ...", &message[..end]) }
}

/// True if a message of the API server, or of the Go library below it, says that there is no such kind. The messages
/// about a missing object or namespace differ.
pub(super) fn says_no_such_kind(message: &str) -> bool {
    message.starts_with("404 page not found") || message.contains("could not find the requested resource")
}

/// True for an error that may pass by itself: overload, a restart, a namespace that is still being deleted.
pub(super) fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => is_transient_status(status),
        kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => false,
        _ => true,
    }
}

fn is_transient_status(status: &Status) -> bool {
    let passing = match status.code {
        // The namespace is still being deleted, or the controller has not counted a new quota yet.
        403 => {
            ["being terminated", "status unknown for quota"].iter().any(|text| status.message.contains(text))
        }
        // Two objects that count towards the same quota were created at the same time.
        409 => status.reason == reason::CONFLICT && status.message.contains("resourcequotas"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, reason: &str, message: &str) -> kube::Error {
        kube::Error::Api(Box::new(Status::failure(message, reason).with_code(code)))
    }

    /// The answers of real API servers, and their classification by the service.
    #[test]
    fn each_error_of_the_api_server_has_its_reason_and_is_transient_or_not() {
        let quota = "exceeded quota: labs, requested: pods=1, used: pods=5, limited: pods=5";
        let terminating = "unable to create new content in namespace nb-ada because it is being terminated";
        let uncounted = "status unknown for quota: labs";
        let at_once =
            "Operation cannot be fulfilled on resourcequotas \"labs\": the object has been modified";
        for (code, reason, message, expected, passes) in [
            (404, "NotFound", "pods \"nb-ada\" not found", "NotFound", false),
            (409, "AlreadyExists", "pods \"nb-ada\" already exists", "AlreadyExists", false),
            (409, "AlreadyExists", "resourcequotas \"nb-ada\" already exists", "AlreadyExists", false),
            (409, "Conflict", "the object has been modified", "Conflict", false),
            (409, "Conflict", at_once, "Conflict", true),
            (403, "Forbidden", quota, "Forbidden", false),
            (403, "Forbidden", terminating, "Forbidden", true),
            (403, "Forbidden", uncounted, "Forbidden", true),
            (410, "Expired", "The provided continue parameter is too old", "Expired", false),
            (422, "Invalid", "Pod \"nb-ada\" is invalid", "Invalid", false),
            (401, "Unauthorized", "Unauthorized", "Unauthorized", false),
            (429, "TooManyRequests", "too many requests", "TooManyRequests", true),
            (500, "InternalError", "etcdserver: leader changed", "InternalError", true),
            (502, "", "Bad Gateway", "ClusterRefused", true),
            (503, "ServiceUnavailable", "apiserver is shutting down", "ServiceUnavailable", true),
            (504, "Timeout", "request did not complete within requested timeout", "Timeout", true),
        ] {
            let error = refused(code, reason, message);
            assert_eq!(is_transient(&error), passes, "{code} {message}");
            let error = KubernetesError::from_client("create Pod nb-ada", error);
            assert_eq!(error.reason(), expected, "{code} {message}");
            assert_eq!(
                error.to_string(),
                format!("the Kubernetes API refused to create Pod nb-ada: {message}")
            );
        }
    }

    #[test]
    fn an_unreadable_answer_is_not_retried() {
        let unreadable = || {
            let error = serde_json::from_str::<u8>("<html>").expect_err("HTML is not JSON");
            kube::Error::SerdeError(error)
        };
        assert!(!is_transient(&unreadable()));
        let error = KubernetesError::from_client("list Pods", unreadable());
        assert_eq!(error.reason(), "ClusterUnexpected");
        assert!(
            Causes(&error).to_string().starts_with("the Kubernetes API answered with something unexpected: ")
        );
    }

    #[test]
    fn a_refused_connection_is_transient() {
        let refused =
            || kube::Error::Service(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into());
        assert!(is_transient(&refused()));
        assert_eq!(KubernetesError::from_client("list Pods", refused()).reason(), "ClusterUnavailable");
    }
}
