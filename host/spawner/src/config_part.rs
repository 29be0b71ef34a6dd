//! A part of the configuration, for work that starts again when the part changes.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::Config;

/// A part of the configuration, which `of` reads from the whole.
pub struct ConfigPart<F> {
    config: watch::Receiver<Arc<Config>>,
    of: F,
}

impl<F, T> ConfigPart<F>
where
    F: Fn(&Config) -> T,
    T: PartialEq,
{
    /// The part of the configuration that `of` finds in it.
    pub fn new(config: watch::Receiver<Arc<Config>>, of: F) -> Self {
        Self { config, of }
    }

    /// The part as it is now.
    pub fn current(&mut self) -> T {
        (self.of)(&self.config.borrow_and_update())
    }

    /// Does `work` until the part differs from `current`, or until `stop`. If the work ends earlier, this still waits
    /// for one of the two.
    pub async fn while_it_is(
        &mut self,
        current: &T,
        stop: &CancellationToken,
        work: impl Future<Output = ()>,
    ) {
        let Self { config, of } = self;
        let working = async {
            work.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = config.wait_for(|config| of(config) != *current) => {}
            () = working => {}
            () = stop.cancelled() => {}
        }
    }
}
