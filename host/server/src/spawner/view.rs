//! What others see of a lab.

use std::sync::Arc;

use super::live_log::LiveLog;
use super::snapshot::LabSnapshot;
use super::world::Footprint;

/// What others see of a lab.
#[derive(Clone, Default)]
pub(super) struct View {
    pub(super) snapshot: Option<Arc<LabSnapshot>>,
    pub(super) log: Option<Arc<LiveLog>>,
    pub(super) footprint: Footprint,
}
