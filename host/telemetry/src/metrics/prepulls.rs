//! Metrics of images that nodes pull in advance.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::labels::OutcomeLabel;
use super::registration::Registration;

/// The pulls that ended, and those that are to come.
#[derive(Clone)]
pub(super) struct PrepullMetrics {
    pub(super) ended: Family<OutcomeLabel, Counter>,
    pub(super) seconds: Histogram,
    pub(super) running: Gauge,
    pub(super) missing: Gauge,
    pub(super) failing: Gauge,
}

impl PrepullMetrics {
    /// Registers the metrics. `seconds` has the buckets of the times of pulls.
    pub(super) fn new(register: &mut Registration, seconds: Histogram) -> Self {
        Self {
            ended: register.plain("prepulls", "Pulls of images in advance that ended, by how"),
            seconds: register.seconds("prepull", "Time that nodes took to pull an image", seconds),
            running: register.plain("prepulls_running", "Images that nodes pull in advance now"),
            missing: register.plain(
                "prepulls_missing",
                "Images that nodes are to have and do not have yet, once for each node",
            ),
            failing: register.plain(
                "prepulls_failing",
                "Images that nodes could not pull the last time, once for each node",
            ),
        }
    }
}
