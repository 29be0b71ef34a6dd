//! The reason why a question to JupyterHub has no usable answer.

use std::path::PathBuf;

use http::StatusCode;
use wasmspawner_core::lifecycle::forgotten::IncompleteList;

/// The reason why a question to JupyterHub has no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// The file with the token cannot be read.
    #[error("hub.token_file: cannot read {}: {problem}", path.display())]
    Unreadable {
        /// The token file.
        path: PathBuf,
        /// The error of the operating system.
        problem: String,
    },
    /// Other users may read the token file.
    #[error(
        "hub.token_file: {} has mode {mode:04o}, so others can read it; run: chmod 600 {}",
        path.display(), path.display()
    )]
    Exposed {
        /// The token file.
        path: PathBuf,
        /// The file's permission bits.
        mode: u32,
    },
    /// The token file does not hold exactly one token.
    #[error("hub.token_file: {} holds no token; write one line with the service's token at JupyterHub", path.display())]
    NoToken {
        /// The token file.
        path: PathBuf,
    },
    /// The Hub does not know the token.
    #[error(
        "JupyterHub does not accept the token in {} (hub.token_file); give the same token to the service in \
         c.JupyterHub.services",
        path.display()
    )]
    UnknownToken {
        /// The token file.
        path: PathBuf,
    },
    /// The token lacks scopes that the service needs.
    #[error(
        "JupyterHub does not grant this service's token the scopes {missing}, for all users; add a role with \
         `\"scopes\": [\"list:users\", \"read:servers\"]` for it to c.JupyterHub.load_roles"
    )]
    MissingScopes {
        /// The missing scopes, separated by commas.
        missing: String,
    },
    /// The Hub does not answer.
    #[error("JupyterHub at {url} cannot be reached: {problem}")]
    Unreachable {
        /// The Hub's API URL.
        url: String,
        /// The reason why it cannot be reached.
        problem: String,
    },
    /// The Hub answers with an error status.
    #[error("JupyterHub at {url} answers {status}")]
    Answered {
        /// The Hub's API URL.
        url: String,
        /// The status of the answer.
        status: StatusCode,
    },
    /// The answer does not have the form that the Hub's API documents.
    #[error("JupyterHub's answer cannot be understood: {problem}; is hub.api_url that of its API?")]
    Malformed {
        /// The problem with the answer.
        problem: String,
    },
    /// The Hub's list of users is not complete.
    #[error("JupyterHub's list of users is incomplete: {0}")]
    Incomplete(#[from] IncompleteList),
}

impl HubError {
    /// True if asking again may help. Otherwise somebody has to change a setting, here or at the Hub.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Answered { .. } | Self::Incomplete(_))
    }
}
