//! Metrics of environments.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::labels::PhaseLabel;
use super::registration::Registration;

/// Metrics of claims, targets and other clusters.
#[derive(Clone)]
pub(super) struct EnvironmentMetrics {
    pub(super) claims: Family<PhaseLabel, Gauge>,
    pub(super) targets: Family<PhaseLabel, Gauge>,
    pub(super) clusters_away: Gauge,
}

impl EnvironmentMetrics {
    pub(super) fn new(register: &mut Registration) -> Self {
        Self {
            claims: register.plain("environment_claims", "Claims of environments, by phase"),
            targets: register.plain("environment_targets", "Targets of environments, by phase"),
            clusters_away: register.plain("clusters_away", "Other clusters with labs that do not answer"),
        }
    }
}
