use prometheus_client::registry::{Metric, Registry, Unit};

/// Registers metrics while they are made, so that none is counted and never shown.
pub(super) struct Registration(pub(super) Registry);

impl Registration {
    pub(super) fn metric<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }

    /// A metric that has no labels, or none yet.
    pub(super) fn plain<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        self.metric(name, help, M::default())
    }

    /// A metric in seconds, which its name will say.
    pub(super) fn seconds<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register_with_unit(name, help, Unit::Seconds, metric.clone());
        metric
    }
}
