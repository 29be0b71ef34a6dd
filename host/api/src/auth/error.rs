//! Errors of authentication, for single requests and for its setup.

use std::path::PathBuf;

use jiff::Timestamp;
use wasmspawner_core::config::auth::Incomplete;
use wasmspawner_core::names::Username;
use wasmspawner_core::users::identity::UnlikelyGroups;

/// The reasons for which a request is not authenticated. No message reveals anything about a credential that its sender
/// does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AuthError {
    /// No credential was sent.
    #[error("authentication is needed: send the header `Authorization: Bearer TOKEN`")]
    Missing,
    /// The header is malformed.
    #[error("the header Authorization is not `Bearer TOKEN`")]
    Malformed,
    /// The token is unknown or no longer valid.
    #[error("the token is not valid")]
    UnknownToken,
    /// The token expired at this time.
    #[error("the token expired at {0}; request a new one")]
    ExpiredToken(Timestamp),
    /// The token is genuine, but its content makes it unusable here.
    #[error("the token cannot be used here: {0}")]
    UnsuitableToken(String),
    /// The request did not come through the ingress.
    #[error("the request did not come through a trusted ingress")]
    UntrustedPeer,
    /// A header of the ingress is malformed, given twice, or contradicts the token.
    #[error("the ingress sent a bad header: {0}")]
    BadIngressHeader(String),
    /// The request may have been sent by a browser on behalf of another site's page.
    #[error(
        "a request that changes something needs the header `X-Requested-With` (any value) when an ingress authenticates \
         it, so that no page of another site can make a browser send it"
    )]
    CrossSite,
    /// The identity provider does not answer.
    #[error("{0} cannot be asked about the caller at the moment")]
    Unavailable(&'static str),
    /// No uid and gid are known for the user.
    #[error(
        "no uid and gid are known for `{0}`: the identity provider has none, and auth.identities has neither an entry nor a default"
    )]
    UnknownIdentity(Username),
    /// The identity provider does not report the user's groups. Policies decide by groups, so an empty list is not
    /// assumed.
    #[error("the groups of `{user}` are not known: {remedy}, or list the user under auth.identities.users")]
    UnknownGroups {
        /// The user.
        user: Username,
        /// The advice for an operator whose provider does not report the groups.
        remedy: &'static str,
    },
    /// The identity provider reports more groups than any real user has.
    #[error("the groups of `{user}` cannot be used: {problem}")]
    UnlikelyGroups {
        /// The user.
        user: Username,
        /// The number of groups, and the length of the longest name.
        problem: UnlikelyGroups,
    },
}

impl AuthError {
    /// Converts the missing part of a user's identity. `remedy` is the advice for missing groups.
    pub(super) fn incomplete(user: &Username, lack: Incomplete, remedy: &'static str) -> Self {
        match lack {
            Incomplete::Numbers => Self::UnknownIdentity(user.clone()),
            Incomplete::Groups => Self::UnknownGroups { user: user.clone(), remedy },
            Incomplete::Unlikely(problem) => Self::UnlikelyGroups { user: user.clone(), problem },
        }
    }

    /// Ranks the error by how useful it is to the caller. If several methods refuse a request, the error with
    /// the highest weight is the answer.
    pub(super) fn weight(&self) -> u8 {
        match self {
            Self::Missing => 0,
            Self::UntrustedPeer => 1,
            Self::Malformed => 2,
            Self::UnknownToken => 3,
            Self::BadIngressHeader(_) => 4,
            Self::ExpiredToken(_) | Self::UnsuitableToken(_) => 5,
            Self::UnknownIdentity(_)
            | Self::UnknownGroups { .. }
            | Self::UnlikelyGroups { .. }
            | Self::CrossSite => 6,
            Self::Unavailable(_) => 7,
        }
    }
}

/// The reasons for which authentication cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AuthSetupError {
    /// The file of static tokens cannot be read.
    #[error("auth.static.tokens_file: cannot read {}: {error}", path.display())]
    Unreadable {
        /// The token file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file of static tokens is readable by other users.
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
    /// The file of static tokens is malformed.
    #[error("auth.static.tokens_file: {} is not a list of tokens: {problem}", path.display())]
    Malformed {
        /// The token file.
        path: PathBuf,
        /// The problem and its position.
        problem: String,
    },
    /// The file with the ingress's secret cannot be read.
    #[error("auth.headers.proof.shared-secret.file: cannot read {}: {error}", path.display())]
    UnreadableSecret {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file with the ingress's secret does not contain a usable secret.
    #[error(
        "auth.headers.proof.shared-secret.file: {} must hold one line of at least 16 characters, without spaces",
        path.display()
    )]
    WeakSecret {
        /// The file.
        path: PathBuf,
    },
    /// The HTTP client for the identity provider cannot be created.
    #[error("auth: cannot set up HTTPS")]
    Client(#[from] reqwest::Error),
}
