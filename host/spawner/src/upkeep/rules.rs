//! The loaded policies, and the replacement of the configuration while the service runs.

use wasmspawner_core::config::Config;

use crate::labs::Labs;
use wasmspawner_policies::{LoadError, LoadedPolicy, PolicySpec};
use wasmspawner_tasks::detached::detached;

/// The rules of a site: its configuration and policies. Clones share them.
#[derive(Clone)]
pub struct Rules(Labs);

impl Rules {
    /// Creates the view of the rules for these labs.
    pub fn new(labs: Labs) -> Self {
        Self(labs)
    }

    /// The loaded policies, in the order in which they are asked.
    pub fn policies(&self) -> Vec<LoadedPolicy> {
        self.0.context().policies.loaded()
    }

    /// The reason for which no policy can be asked, if one could not be loaded since the service started.
    pub fn missing(&self) -> Option<String> {
        self.0.context().policies.missing()
    }

    /// Loads all policies again. If one cannot be loaded, none is replaced. A reload that has begun is finished even if
    /// the caller does not wait for it.
    pub async fn reload_policies(&self) -> Result<(), LoadError> {
        let labs = self.0.clone();
        detached(async move {
            let reloaded = labs.context().policies.reload().await;
            labs.context().count_reload(&reloaded);
            reloaded
        })
        .await
    }

    /// Replaces the configuration and its policies, all or nothing. Operations that have begun go on as they began.
    pub async fn replace(&self, config: Config) -> Result<(), LoadError> {
        self.0.context().policies.replace(PolicySpec::all(&config.policies)?).await?;
        self.0.context().config.replace(config);
        self.0.share_workers();
        Ok(())
    }
}
