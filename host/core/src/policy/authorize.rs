use serde::{Deserialize, Serialize};

use super::{Options, User};

/// What a user wants to do.
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

/// The question `authorize` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorizeRequest {
    /// What is to happen.
    pub action: Action,
    /// Who asks.
    pub user: User,
    /// Which of their servers; `""` is the default one.
    #[serde(default)]
    pub server: String,
    /// The parsed options of a spawn, else empty.
    #[serde(default)]
    pub options: Options,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may happen.
    Allow,
    /// It may not. The message is shown to the user.
    Deny(String),
}
