//! A lab as the API shows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use wasmspawner_core::config::lab::LabSection;
use wasmspawner_core::lab::{JobId, LabKey};
use wasmspawner_core::lifecycle::{LabStatus, PodPresence};
use wasmspawner_core::record::LabDescription;
use wasmspawner_core::stage::{ObservedPod, Stage};

/// A lab at one moment. Credentials in `env` are already redacted.
#[derive(Debug, Clone, PartialEq)]
pub struct LabSnapshot {
    /// Which lab.
    pub key: LabKey,
    /// Where in its life it is.
    pub status: LabStatus,
    /// Whether its pod exists.
    pub pod: PodPresence,
    /// What it was started with.
    pub about: Arc<LabDetails>,
    /// Where the Hub reaches it, once it has an address.
    pub url: Option<String>,
    /// The pod's stage.
    pub stage: Option<Stage>,
    /// Why, for programs.
    pub reason: Option<String>,
    /// Why, for people.
    pub message: Option<String>,
    /// How far the operation is, 0 to 100.
    pub progress: u8,
    /// The operation under way, or the last one.
    pub job_id: Option<JobId>,
    /// How often a container was restarted since the lab became ready.
    pub restarts: u32,
}

/// What a lab was started with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabDetails {
    /// What its record says of it.
    pub description: Arc<LabDescription>,
    /// The environment, credentials redacted.
    pub env: BTreeMap<String, String>,
    /// When the spawn began.
    pub started_at: Option<Timestamp>,
}

/// Where the Hub reaches the lab of this pod, once it has an address.
pub(super) fn url(pod: &ObservedPod, config: &LabSection) -> Option<String> {
    let ip = pod.ip.as_deref()?;
    let host = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
    Some(format!("http://{host}:{}", config.port))
}
