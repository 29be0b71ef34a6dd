//! What others see of a lab.

use std::sync::Arc;

use wasmspawner_core::lab::JobId;

use super::live_log::LiveLog;
use super::snapshot::LabSnapshot;

/// What others see of a lab.
#[derive(Clone, Default)]
pub(super) struct View {
    pub(super) snapshot: Option<Arc<LabSnapshot>>,
    pub(super) log: Option<Arc<LiveLog>>,
    /// Its objects are being created: an end of the service now would lose the spawn.
    pub(super) creating: bool,
    /// The operation under way, or the last one.
    pub(super) job_id: Option<JobId>,
    /// The uid of its record.
    pub(super) record: Option<String>,
}
