//! Why a caller is not let in.

use std::path::PathBuf;

use wasmspawner_core::names::Username;

/// Why a caller is not let in. None of these says anything about a credential that its bearer does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::http) enum AuthError {
    /// No credential was sent.
    #[error("authentication is needed: send the header `Authorization: Bearer TOKEN`")]
    Missing,
    /// The header is of another shape.
    #[error("the header Authorization is not `Bearer TOKEN`")]
    Malformed,
    /// The credential is not known, or not any more.
    #[error("the token is not valid")]
    UnknownToken,
    /// The request did not come through the ingress.
    #[error("the request did not come through a trusted ingress")]
    UntrustedPeer,
    /// The ingress sent something that no ingress of ours sends.
    #[error("the ingress sent a bad header: {0}")]
    BadIngressHeader(String),
    /// Who could say is not answering.
    #[error("{0} cannot be asked about the caller at the moment")]
    Unavailable(&'static str),
    /// Nobody knows the user's numbers.
    #[error(
        "no uid and gid are known for `{0}`: the identity provider has none, and auth.identities has neither an entry nor a default"
    )]
    UnknownIdentity(Username),
}

/// Authentication cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AuthSetupError {
    /// The file of static tokens cannot be read.
    #[error("auth.static.tokens_file: cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Others may read the file of static tokens.
    #[error(
        "auth.static.tokens_file: {} has mode {mode:04o}, so others can read it; run: chmod 600 {}",
        path.display(), path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file of static tokens has something else in it.
    #[error("auth.static.tokens_file: {} is no list of tokens: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What and where.
        problem: String,
    },
    /// The client for asking the identity provider cannot be made.
    #[error("auth: cannot set up HTTPS")]
    Client(#[from] reqwest::Error),
}
