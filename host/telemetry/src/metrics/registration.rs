use prometheus_client::registry::{Metric, Registry, Unit};

/// Registers each metric as it is created, so that no metric is counted but never exported.
pub(super) struct Registration(pub(super) Registry);

impl Registration {
    pub(super) fn metric<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }

    /// Registers a metric with its default value: no labels, or none yet.
    pub(super) fn plain<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        self.metric(name, help, M::default())
    }

    /// Registers a metric in seconds. Its name gets the suffix of the unit.
    pub(super) fn seconds<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register_with_unit(name, help, Unit::Seconds, metric.clone());
        metric
    }
}
