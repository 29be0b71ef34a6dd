//! Why JupyterHub gave no answer that can be used.

use std::path::PathBuf;

use http::StatusCode;
use wasmspawner_core::forgotten::IncompleteList;

/// Why JupyterHub gave no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// The file with the token cannot be read.
    #[error("hub.token_file: cannot read {}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// Others may read it.
    #[error(
        "hub.token_file: {} has mode {mode:04o}, so others can read it; run: chmod 600 {}",
        path.display(), path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It has something else in it.
    #[error("hub.token_file: {} holds no token; write one line with the service's token at JupyterHub", path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
    },
    /// The Hub does not know the token.
    #[error(
        "JupyterHub does not accept the token in {} (hub.token_file); give the same token to the service in \
         c.JupyterHub.services",
        path.display()
    )]
    UnknownToken {
        /// The file.
        path: PathBuf,
    },
    /// The token may not read what is needed.
    #[error(
        "JupyterHub does not grant this service's token the scopes {missing}, for all users; add a role with \
         `\"scopes\": [\"list:users\", \"read:servers\"]` for it to c.JupyterHub.load_roles"
    )]
    MissingScopes {
        /// Which ones.
        missing: String,
    },
    /// The Hub does not answer.
    #[error("JupyterHub at {url} cannot be reached: {problem}")]
    Unreachable {
        /// Where it was asked.
        url: String,
        /// What happened.
        problem: String,
    },
    /// The Hub answers with an error.
    #[error("JupyterHub at {url} answers {status}")]
    Answered {
        /// Where it was asked.
        url: String,
        /// Its answer.
        status: StatusCode,
    },
    /// The answer has another shape.
    #[error("JupyterHub's answer cannot be understood: {problem}; is hub.api_url that of its API?")]
    Malformed {
        /// What is wrong with it.
        problem: String,
    },
    /// The list is not complete.
    #[error("JupyterHub's list of users is incomplete: {0}")]
    Incomplete(#[from] IncompleteList),
}

impl HubError {
    /// True if asking again may help; otherwise somebody has to change a setting here or at the Hub.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Answered { .. } | Self::Incomplete(_))
    }
}
