//! The configuration, which may be replaced while the service runs.

use std::sync::Arc;

use tokio::sync::watch;
use wasmspawner_core::config::Config;

/// The configuration, which may be replaced while the service runs. Two settings that belong together must be taken
/// from one `current()`.
#[derive(Debug)]
pub struct LiveConfig(watch::Sender<Arc<Config>>);

impl LiveConfig {
    /// Begins with this configuration.
    pub fn new(config: Config) -> Self {
        Self(watch::Sender::new(Arc::new(config)))
    }

    /// The configuration of this moment.
    pub fn current(&self) -> Arc<Config> {
        self.0.borrow().clone()
    }

    /// The configuration of this moment and of later ones.
    pub fn follow(&self) -> watch::Receiver<Arc<Config>> {
        self.0.subscribe()
    }

    pub(crate) fn replace(&self, config: Config) {
        self.0.send_replace(Arc::new(config));
    }
}
