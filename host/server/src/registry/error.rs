use std::path::PathBuf;

use tokio_rustls::rustls;

/// Why something cannot be read from a registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The file with credentials, or that with certificate authorities, cannot be used.
    #[error("{key}: {}: {problem}", .path.display())]
    File {
        /// The key of the configuration.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The registry does not let the service read this.
    #[error("the registry refuses access, or it does not exist there; {}", if *.login {
        "the login in `registries.credentials_file` may be wrong"
    } else {
        "a private registry needs a login in `registries.credentials_file`"
    })]
    Refused {
        /// Whether the service has a login for the registry.
        login: bool,
    },
    /// The registry has no such thing.
    #[error("the registry has nothing of this name and tag")]
    NotFound,
    /// There is something else than was expected.
    #[error("{0}")]
    Unusable(String),
    /// It is larger than allowed.
    #[error("it has {size} bytes; {limit} are allowed")]
    TooLarge {
        /// The size in bytes, as the registry says it, or as much as was received.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The registry cannot be reached, or has a failure of its own.
    #[error("the registry does not answer: {0}")]
    Away(String),
}

impl RegistryError {
    pub(super) fn unusable(problem: impl Into<String>) -> Self {
        Self::Unusable(problem.into())
    }

    /// True if the registry has not answered the question, so that an earlier answer may still be right.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

impl From<reqwest::Error> for RegistryError {
    fn from(error: reqwest::Error) -> Self {
        Self::Away(with_causes(&error))
    }
}

/// The error and what caused it, without the URL of the request, which may contain credentials.
fn with_causes(error: &reqwest::Error) -> String {
    let mut text = match () {
        () if error.is_timeout() => "it takes too long".to_owned(),
        () if error.is_connect() => "it cannot be reached".to_owned(),
        () => "the connection failed".to_owned(),
    };
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.source().is_none() {
            text = format!("{text}: {error}{}", remedy(error).unwrap_or_default());
        }
        cause = error.source();
    }
    text
}

/// What the operator can do about an error of TLS.
fn remedy(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    let mut innermost = error;
    while let Some(inner) = innermost.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        innermost = inner;
    }
    match innermost.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidMessage(_) => {
            Some("; a registry without TLS is listed in `registries.plain_http`")
        }
        rustls::Error::InvalidCertificate(_) => {
            Some("; `registries.ca_file` names the authorities of a site's own certificates")
        }
        _ => None,
    }
}
