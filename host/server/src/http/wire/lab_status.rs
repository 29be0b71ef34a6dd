//! Where labs are in their lives, in short.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::lab::LabKey;

use super::lab::pod;
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
    /// `starting`, `running`, `terminating` or `failed`; null for a lab that is gone.
    status: Option<&'static str>,
    /// Whether the pod exists: `present` or `missing`.
    pod: &'static str,
    /// Where the Hub reaches the lab, once it has an address.
    url: Option<String>,
    /// The operation under way, or the last one.
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
            pod: "missing",
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
            status: Some(lab.status.as_str()),
            pod: pod(lab.pod),
            url: lab.url.clone(),
            job_id: lab.job_id.map(|id| id.to_string()),
            message: lab.message.clone(),
        }
    }
}
