//! The state of a lab that its driver publishes.

use std::sync::Arc;

use wasmspawner_core::lifecycle::LabStatus;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::record::Place;

use super::live_log::LiveLog;
use super::snapshot::LabSnapshot;

/// The state of a lab that its driver publishes.
#[derive(Clone, Default)]
pub(crate) struct View {
    pub(crate) snapshot: Option<Arc<LabSnapshot>>,
    pub(crate) log: Option<Arc<LiveLog>>,
    /// True while the lab's objects are being created. If the service ended now, the spawn would be lost.
    pub(crate) creating: bool,
    /// The id of the operation under way, or of the last one.
    pub(crate) job_id: Option<JobId>,
    /// The uid of the lab's record.
    pub(crate) record: Option<String>,
    /// The place of the lab in the cluster.
    pub(crate) place: Option<Place>,
    /// The uid of the lab's pod.
    pub(crate) pod_uid: Option<String>,
}

impl View {
    /// The part of a child's state that its lab reads: the status, and whether there is a record.
    pub(crate) fn presence(&self) -> (Option<LabStatus>, bool) {
        (self.snapshot.as_ref().map(|spawn| spawn.status), self.record.is_some())
    }

    /// True for a child that goes on when its lab ends.
    pub(crate) fn outlives_lab(&self) -> bool {
        let pool = self.snapshot.as_ref().and_then(|spawn| spawn.about.description.pool.as_ref());
        pool.is_some_and(|pool| pool.outlives_lab)
    }
}
