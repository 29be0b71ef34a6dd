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

/// The environments of a site. Clones share them.
#[derive(Clone)]
pub struct SiteEnvironments(Labs);

impl SiteEnvironments {
    /// Creates the view of the environments in which these labs are.
    pub fn new(labs: Labs) -> Self {
        Self(labs)
    }

    /// All environments, claims and targets.
    pub fn overview(&self) -> Result<Overview, EnvironmentsError> {
        self.0.require_ready()?;
        Ok(self.known()?.overview())
    }

    /// Makes a target that was released, and is kept for its owner, available to everybody.
    pub async fn release(&self, name: &str) -> Result<(), EnvironmentsError> {
        self.0.require_ready()?;
        let released = self.known()?.release(name).await.map_err(SpawnError::from)?;
        Ok(released?)
    }

    /// Deletes a target that no claim has. Its namespace is deleted, too, if that was made for the target.
    pub async fn retire(&self, name: &str) -> Result<(), EnvironmentsError> {
        self.0.require_ready()?;
        let retired = self.known()?.retire(name).await.map_err(SpawnError::from)?;
        Ok(retired?)
    }

    /// Sets the metrics of environments and of other clusters.
    pub fn measure(&self) {
        let context = self.0.context();
        if let Some(environments) = &context.environments {
            context.metrics.set_environments(&environments.count());
        }
        let others = context.clusters.others_known();
        let away = others.iter().filter(|(_, cluster)| cluster.health().is_away());
        context.metrics.set_clusters_away(away.count());
    }

    fn known(&self) -> Result<&Environments, EnvironmentsError> {
        self.0.context().environments.as_ref().ok_or(EnvironmentsError::None)
    }
}
