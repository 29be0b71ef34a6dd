//! The answer about the lab of a user string.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::policy::user_string::UserString;

use super::status::LabStatus;
use wasmspawner_spawner::LabSnapshot;

/// The lab that a user string means.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LabLookup {
    /// The user string in its canonical form.
    #[schema(example = "ada~blueprint=gpu")]
    user_string: String,
    /// The user whose lab it is.
    username: String,
    /// The name of the user's server; empty for the default server.
    server: String,
    /// The path of the lab in this API.
    #[schema(example = "/spawner/v1/labs/ada/servers/gpu")]
    path: String,
    /// Whether the lab is starting, running, terminating or failed.
    status: LabStatus,
}

impl LabLookup {
    /// Creates the answer about the lab at `path`.
    pub(crate) fn new(asked: &UserString, path: String, lab: &LabSnapshot) -> Self {
        let key = asked.lab();
        Self {
            user_string: asked.to_string(),
            username: key.user.into(),
            server: key.server.into(),
            path,
            status: lab.status.into(),
        }
    }
}
