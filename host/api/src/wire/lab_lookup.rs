//! The answer about the lab of a user string, or about a child of the lab.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::names::spawn_key::{ChildKey, ChildKind};
use wasmspawner_core::policy::user_string::SpawnString;

use super::status::LabStatus;
use wasmspawner_spawner::LabSnapshot;

/// The lab that a user string means, or the kernel or pool of the lab.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LabLookup {
    /// The user string in its canonical form.
    #[schema(example = "ada~blueprint=gpu")]
    user_string: String,
    /// The user whose lab it is.
    username: String,
    /// The name of the user's server; empty for the default server.
    server: String,
    /// The kernel of the lab, if the user string names one.
    kernel: Option<String>,
    /// The Dask pool of the lab, if the user string names one.
    dask_pool: Option<String>,
    /// The path of the lab, the kernel or the pool in this API. `DELETE` at this path stops it, and below it are its events.
    #[schema(example = "/spawner/v1/labs/ada/servers/gpu")]
    path: String,
    /// Its state: starting, running, terminating or failed.
    status: LabStatus,
}

impl LabLookup {
    /// Creates the answer about the lab or child at `path`.
    pub(crate) fn new(asked: &SpawnString, path: String, lab: &LabSnapshot) -> Self {
        let key = asked.key();
        let child = |kind| {
            let child = key.child.as_ref().filter(|child: &&ChildKey| child.kind == kind);
            child.map(|child| child.name.to_string())
        };
        Self {
            user_string: asked.to_string(),
            kernel: child(ChildKind::Kernel),
            dask_pool: child(ChildKind::DaskPool),
            username: key.lab.user.into(),
            server: key.lab.server.into(),
            path,
            status: lab.status.into(),
        }
    }
}
