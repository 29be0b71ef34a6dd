//! The answer about the status of all labs.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::names::lab::LabKey;

use super::status::{LabStatus, PodPresence};
use wasmspawner_spawner::{LabChanges, LabSnapshot};

/// All labs, or those that have changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LabStatusReport {
    /// The revision to give as `since` in the next request.
    revision: String,
    /// True if `labs` holds all labs: a lab that is not in it does not exist.
    complete: bool,
    /// The labs, in no particular order.
    labs: Vec<LabStatusEntry>,
}

/// The status of one lab.
#[derive(Debug, Serialize, ToSchema)]
struct LabStatusEntry {
    /// The user whose lab it is.
    username: String,
    /// The name of the user's server; empty for the default server.
    server: String,
    /// Whether the lab is starting, running, terminating or failed; null for a lab that is gone.
    status: Option<LabStatus>,
    /// Whether the pod exists.
    pod: PodPresence,
    /// The URL at which the Hub reaches the lab, once it has an address.
    url: Option<String>,
    /// The id of the operation under way, or of the last one.
    #[schema(format = "uuid")]
    job_id: Option<String>,
    /// What is going on or what failed, for people.
    message: Option<String>,
}

impl From<LabChanges> for LabStatusReport {
    fn from(changes: LabChanges) -> Self {
        let labs = changes.labs.iter().map(|lab| LabStatusEntry::from(&**lab));
        let gone = changes.gone.into_iter().map(LabStatusEntry::gone);
        Self { revision: changes.revision, complete: changes.complete, labs: labs.chain(gone).collect() }
    }
}

impl LabStatusEntry {
    fn gone(key: LabKey) -> Self {
        Self {
            username: key.user.into(),
            server: key.server.into(),
            status: None,
            pod: PodPresence::Missing,
            url: None,
            job_id: None,
            message: None,
        }
    }
}

impl From<&LabSnapshot> for LabStatusEntry {
    fn from(lab: &LabSnapshot) -> Self {
        Self {
            username: lab.key.lab.user.to_string(),
            server: lab.key.lab.server.to_string(),
            status: Some(lab.status.into()),
            pod: lab.pod.into(),
            url: lab.url.clone(),
            job_id: lab.job_id.map(|id| id.to_string()),
            message: lab.message.clone(),
        }
    }
}
