//! Where labs are in their lives, in short.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::lab::LabKey;

use super::status::{LabStatus, PodPresence};
use crate::spawner::{LabChanges, LabSnapshot};

/// All labs, or those that changed.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct LabStatusReport {
    /// To be given as `since` in the next request.
    revision: String,
    /// True if these are all labs: what is not among them does not exist.
    complete: bool,
    /// The labs, in no order.
    labs: Vec<LabStatusEntry>,
}

/// One lab.
#[derive(Debug, Serialize, ToSchema)]
struct LabStatusEntry {
    /// Whose it is.
    username: String,
    /// Which of the user's servers; empty for the default one.
    server: String,
    /// Where it is in its life; null for a lab that is gone.
    status: Option<LabStatus>,
    /// Whether the pod exists.
    pod: PodPresence,
    /// Where the Hub reaches the lab, once it has an address.
    url: Option<String>,
    /// The operation under way, or the last one.
    #[schema(format = "uuid")]
    job_id: Option<String>,
    /// What there is to say about it, for people.
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
            username: lab.key.user.to_string(),
            server: lab.key.server.to_string(),
            status: Some(lab.status.into()),
            pod: lab.pod.into(),
            url: lab.url.clone(),
            job_id: lab.job_id.map(|id| id.to_string()),
            message: lab.message.clone(),
        }
    }
}
