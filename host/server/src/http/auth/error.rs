//! Why a request is not authenticated, and why authentication cannot be set up.

use std::path::PathBuf;

use wasmspawner_core::names::Username;

/// Why a request is not authenticated. No message reveals anything about a credential that its sender does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::http) enum AuthError {
    /// No credential was sent.
    #[error("authentication is needed: send the header `Authorization: Bearer TOKEN`")]
    Missing,
    /// The header has another form.
    #[error("the header Authorization is not `Bearer TOKEN`")]
    Malformed,
    /// The token is unknown, or not valid any more.
    #[error("the token is not valid")]
    UnknownToken,
    /// The request did not come through the ingress.
    #[error("the request did not come through a trusted ingress")]
    UntrustedPeer,
    /// A header of the ingress is malformed, given twice, or contradicts the token.
    #[error("the ingress sent a bad header: {0}")]
    BadIngressHeader(String),
    /// The service that knows the caller does not answer.
    #[error("{0} cannot be asked about the caller at the moment")]
    Unavailable(&'static str),
    /// No uid and gid are known for the user.
    #[error(
        "no uid and gid are known for `{0}`: the identity provider has none, and auth.identities has neither an entry nor a default"
    )]
    UnknownIdentity(Username),
}

/// Why authentication cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AuthSetupError {
    /// The file of static tokens cannot be read.
    #[error("auth.static.tokens_file: cannot read {}: {source}", path.display())]
    Unreadable {
        /// The token file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Other users may read the file of static tokens.
    #[error(
        "auth.static.tokens_file: {} has mode {mode:04o}, so others can read it; run: chmod 600 {}",
        path.display(), path.display()
    )]
    Exposed {
        /// The token file.
        path: PathBuf,
        /// The file's permission bits.
        mode: u32,
    },
    /// The file of static tokens has another format.
    #[error("auth.static.tokens_file: {} is not a list of tokens: {problem}", path.display())]
    Malformed {
        /// The token file.
        path: PathBuf,
        /// What is wrong, and where.
        problem: String,
    },
    /// The HTTP client for the identity provider cannot be made.
    #[error("auth: cannot set up HTTPS")]
    Client(#[from] reqwest::Error),
}
