//! Metrics of reloads of the configuration and the policies.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::labels::OutcomeLabel;
use super::registration::Registration;

/// The number of reloads, and the success of the last one.
#[derive(Clone)]
pub(super) struct ReloadMetrics {
    pub(super) reloads: Family<OutcomeLabel, Counter>,
    pub(super) last_successful: Gauge,
    /// 1 while no policy can be asked.
    pub(super) missing: Gauge,
}

impl ReloadMetrics {
    pub(super) fn new(register: &mut Registration) -> Self {
        let metrics = Self {
            reloads: register
                .plain("reloads", "Reloads of the configuration or the policies, by what came of them"),
            last_successful: register.plain(
                "last_reload_successful",
                "1 while the configuration and the policies in use are those of the files",
            ),
            missing: register.plain(
                "policies_missing",
                "1 while no lab can be started, because a policy could not be loaded since the service started",
            ),
        };
        metrics.last_successful.set(1);
        metrics
    }
}
