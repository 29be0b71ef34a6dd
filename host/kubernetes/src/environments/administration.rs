//! The views and actions of administrators.

use wasmspawner_core::custom_resource::environment::{Overview, PhaseCounts, RELEASED, World};

use super::Environments;
use crate::k8s::KubernetesError;

/// The reason why a target is not released or retired.
#[derive(Debug, thiserror::Error)]
pub enum TargetRefusal {
    /// There is no target of this name.
    #[error("there is no target {0}")]
    Unknown(String),
    /// The target is not released.
    #[error("the target {0} was not released, so that there is nothing to free; it is kept for nobody")]
    NotReleased(String),
    /// A claim has the target.
    #[error("the claim {claim} has the target {name}; stop the lab, or delete the claim, first")]
    InUse {
        /// The target's name.
        name: String,
        /// The claim's name.
        claim: String,
    },
    /// Somebody else changes the target at the same time.
    #[error("the target {0} has just changed; try again")]
    Changed(String),
}

impl Environments {
    /// All environments, claims and targets.
    pub fn overview(&self) -> Overview {
        self.seen.with(World::overview)
    }

    /// True if there is a target with this uid.
    pub fn has_target(&self, uid: &str) -> bool {
        self.seen.with(|world| world.targets.values().any(|target| target.uid() == uid))
    }

    /// Counts the claims and targets in each phase.
    pub fn count(&self) -> PhaseCounts {
        self.seen.with(World::count)
    }

    /// Frees a target that was released and is kept for its owner, so that everybody can have it.
    pub async fn release(&self, name: &str) -> Result<Result<(), TargetRefusal>, KubernetesError> {
        let Some(target) = self.targets.get(name).await? else {
            return Ok(Err(TargetRefusal::Unknown(name.to_owned())));
        };
        if !target.is_released() {
            return Ok(Err(TargetRefusal::NotReleased(name.to_owned())));
        }
        let mut next = target.clone();
        next.metadata.labels.get_or_insert_default().remove(RELEASED);
        match self.targets.replace(&target, &next).await? {
            Some(written) => {
                tracing::info!(target = name, "a target is freed, as an administrator wants");
                self.seen.put_target(written);
                Ok(Ok(()))
            }
            None => Ok(Err(TargetRefusal::Changed(name.to_owned()))),
        }
    }

    /// Deletes a target that no claim has.
    pub async fn retire(&self, name: &str) -> Result<Result<(), TargetRefusal>, KubernetesError> {
        let Some(target) = self.targets.get(name).await? else {
            return Ok(Err(TargetRefusal::Unknown(name.to_owned())));
        };
        if let Some(claim) = &target.spec.claim_ref {
            return Ok(Err(TargetRefusal::InUse { name: name.to_owned(), claim: claim.name.to_string() }));
        }
        tracing::info!(target = name, "a target is deleted, as an administrator wants");
        self.targets.delete(name, target.uid()).await?;
        Ok(Ok(()))
    }
}
