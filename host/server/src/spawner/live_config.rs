//! The configuration, which may be replaced while the service runs.

use std::sync::Arc;

use arc_swap::ArcSwap;
use wasmspawner_core::config::Config;

/// The configuration, which may be replaced while the service runs. Whoever needs two settings that belong together
/// takes them from one `current()`.
#[derive(Debug)]
pub struct LiveConfig(ArcSwap<Config>);

impl LiveConfig {
    /// Begins with this configuration.
    pub fn new(config: Config) -> Self {
        Self(ArcSwap::from_pointee(config))
    }

    /// The configuration of this moment.
    pub fn current(&self) -> Arc<Config> {
        self.0.load_full()
    }

    pub(super) fn replace(&self, config: Config) {
        self.0.store(Arc::new(config));
    }
}
