//! The environments as administrators see them, and the actions on them.

use wasmspawner_core::custom_resource::environment::Overview;

use crate::errors::SpawnError;
use crate::labs::Labs;
use wasmspawner_kubernetes::environments::{Environments, TargetRefusal};

/// The reason why environments cannot be shown or changed.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentsError {
    /// The service has just started, or the cluster does not answer.
    #[error(transparent)]
    Spawner(#[from] SpawnError),
    /// The site has no environments.
    #[error("this site has no environments: the section `environments` is not in the configuration")]
    None,
    /// There is no such target, or its state does not allow it.
    #[error(transparent)]
    Target(#[from] TargetRefusal),
}

impl Labs {
    /// All environments, claims and targets.
    pub fn environments(&self) -> Result<Overview, EnvironmentsError> {
        self.require_ready()?;
        Ok(self.known_environments()?.overview())
    }

    /// Makes a target that was released, and is kept for its owner, available to everybody.
    pub async fn release_target(&self, name: &str) -> Result<(), EnvironmentsError> {
        self.require_ready()?;
        let released = self.known_environments()?.release(name).await.map_err(SpawnError::from)?;
        Ok(released?)
    }

    /// Deletes a target that no claim has. Its namespace is deleted, too, if that was made for the target.
    pub async fn retire_target(&self, name: &str) -> Result<(), EnvironmentsError> {
        self.require_ready()?;
        let retired = self.known_environments()?.retire(name).await.map_err(SpawnError::from)?;
        Ok(retired?)
    }

    /// Sets the metrics of environments and of other clusters.
    pub fn measure_environments(&self) {
        let context = self.context();
        if let Some(environments) = &context.environments {
            context.metrics.set_environments(&environments.count());
        }
        let others = context.clusters.others_known();
        let away = others.iter().filter(|(_, cluster)| cluster.health().is_away());
        context.metrics.set_clusters_away(away.count());
    }

    fn known_environments(&self) -> Result<&Environments, EnvironmentsError> {
        self.context().environments.as_ref().ok_or(EnvironmentsError::None)
    }
}
