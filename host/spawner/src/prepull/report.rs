use std::sync::Arc;

use arc_swap::ArcSwapOption;
use wasmspawner_core::images::{FailedPull, NeededImage, PullPod};

/// The images that are pulled in advance, as of the last round.
#[derive(Clone, Debug, Default)]
pub struct PrepullReport {
    /// The images that nodes are to have, the most important first.
    pub images: Vec<NeededImage>,
    /// The pulls that run.
    pub running: Vec<PullPod>,
    /// The pulls that have failed and are tried again, those that failed last first.
    pub failed: Vec<FailedPull>,
    /// The reason why nothing can be pulled, or not everything.
    pub problem: Option<String>,
}

/// The present report, which changes while the service runs. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LivePrepulls(Arc<ArcSwapOption<PrepullReport>>);

impl LivePrepulls {
    /// The report of this moment; `None` if nothing is pulled in advance.
    pub fn current(&self) -> Option<Arc<PrepullReport>> {
        self.0.load_full()
    }

    pub(super) fn replace(&self, report: Option<PrepullReport>) {
        self.0.store(report.map(Arc::new));
    }
}
