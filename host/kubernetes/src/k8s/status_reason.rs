use std::fmt;

use kube::core::response::reason;

/// The reason why the API server refused a request: the `reason` of Kubernetes' `Status`. The reasons that the service
/// acts on have variants of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusReason {
    /// The object does not exist.
    NotFound,
    /// An object of this name exists.
    AlreadyExists,
    /// The object has changed or been replaced since it was read.
    Conflict,
    /// The service may not do this, a quota is used up, or the namespace is being deleted.
    Forbidden,
    /// The API server does not accept the credentials.
    Unauthorized,
    /// The object breaks a rule of its kind.
    Invalid,
    /// The continuation of a list is too old.
    Expired,
    /// The API server gave no reason, as proxies do.
    Unknown,
    /// Another reason of Kubernetes.
    Other(String),
}

impl StatusReason {
    /// The reason as Kubernetes writes it; empty for [`StatusReason::Unknown`].
    pub fn as_str(&self) -> &str {
        match self {
            Self::NotFound => reason::NOT_FOUND,
            Self::AlreadyExists => reason::ALREADY_EXISTS,
            Self::Conflict => reason::CONFLICT,
            Self::Forbidden => reason::FORBIDDEN,
            Self::Unauthorized => reason::UNAUTHORIZED,
            Self::Invalid => reason::INVALID,
            Self::Expired => reason::EXPIRED,
            Self::Unknown => reason::UNKNOWN,
            Self::Other(reason) => reason,
        }
    }
}

impl From<String> for StatusReason {
    fn from(text: String) -> Self {
        match text.as_str() {
            reason::NOT_FOUND => Self::NotFound,
            reason::ALREADY_EXISTS => Self::AlreadyExists,
            reason::CONFLICT => Self::Conflict,
            reason::FORBIDDEN => Self::Forbidden,
            reason::UNAUTHORIZED => Self::Unauthorized,
            reason::INVALID => Self::Invalid,
            reason::EXPIRED => Self::Expired,
            reason::UNKNOWN => Self::Unknown,
            _ => Self::Other(text),
        }
    }
}

impl fmt::Display for StatusReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
