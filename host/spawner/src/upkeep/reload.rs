//! The loaded policies, and the replacement of the configuration while the service runs.

use wasmspawner_core::config::Config;

use crate::labs::Labs;
use wasmspawner_policies::{LoadError, LoadedPolicy, PolicySpec};
use wasmspawner_tasks::detached::detached;
use wasmspawner_telemetry::Reload;

impl Labs {
    /// The loaded policies, in the order in which they are asked.
    pub fn policies(&self) -> Vec<LoadedPolicy> {
        self.context().policies.loaded()
    }

    /// Loads all policies again. If one cannot be loaded, none is replaced. A reload that has begun is finished even if
    /// the caller does not wait for it.
    pub async fn reload_policies(&self) -> Result<(), LoadError> {
        let labs = self.clone();
        detached(async move {
            let reloaded = labs.context().policies.reload().await;
            labs.context().metrics.reloaded(Reload::of(&reloaded));
            reloaded
        })
        .await
    }

    /// Replaces the configuration and its policies, all or nothing. Operations that have begun go on as they began.
    pub async fn reload(&self, config: Config) -> Result<(), LoadError> {
        self.context().policies.replace(PolicySpec::all(&config.policies)?).await?;
        self.context().config.replace(config);
        self.share_workers();
        Ok(())
    }
}
