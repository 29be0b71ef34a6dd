use serde::{Deserialize, Serialize};

use super::denial::Denial;
use super::{Options, Subject, User};

/// An action of a user that policies may allow or deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Start a lab.
    Spawn,
    /// Stop a lab.
    Stop,
    /// Start a kernel beside a lab.
    StartKernel,
    /// Create a Dask pool below a lab.
    DaskPool,
    /// Change the size of something that runs.
    Scale,
}

/// The question that the hook `authorize` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorizeRequest {
    /// The action that the user wants to perform.
    pub action: Action,
    /// The user who wants to perform it.
    pub user: User,
    /// Name of the user's server; `""` is the default server.
    #[serde(default)]
    pub server: String,
    /// The parsed options of a spawn; empty for other actions.
    #[serde(default)]
    pub options: Options,
    /// The subject of the action, beyond its user, server and options.
    #[serde(skip)]
    pub subject: Subject,
}

/// The answer of the hook `authorize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The action is allowed.
    Allow,
    /// The action is denied.
    Deny(Denial),
}
