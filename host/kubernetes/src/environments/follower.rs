//! Follows one claim.

use std::sync::Arc;

use tokio::sync::Notify;
use wasmspawner_core::names::ObjectName;

use super::observed::ObservedEnvironments;
use crate::k8s::belongs_to;

/// Follows one claim and its target.
pub struct ClaimFollower {
    seen: Arc<ObservedEnvironments>,
    name: String,
    wake: Arc<Notify>,
}

impl ClaimFollower {
    pub(super) fn new(seen: &Arc<ObservedEnvironments>, name: &ObjectName) -> Self {
        let wake = Arc::new(Notify::new());
        seen.add_follower(name.as_str(), &wake);
        Self { seen: Arc::clone(seen), name: name.to_string(), wake }
    }

    /// Waits until something has changed since the last call.
    pub async fn changed(&self) {
        self.wake.notified().await;
    }

    /// Returns whether the claim is being deleted, or `None` if there is no claim of the spawn whose record has this
    /// uid.
    pub fn is_deleting(&self, spawn: &str) -> Option<bool> {
        self.seen.with(|world| {
            let claim = world.claims.get(&self.name).filter(|claim| belongs_to(&claim.metadata, spawn))?;
            Some(claim.is_deleting())
        })
    }

    /// Returns the reason why the claim is not gone, if it is being deleted.
    pub fn stuck(&self) -> Option<String> {
        self.seen.with(|world| {
            let claim = world.claims.get(&self.name).filter(|claim| claim.is_deleting())?;
            let target = world.targets.values().find(|target| target.is_for(claim))?;
            let failure = world.failures.get(target.uid()).map(|failure| failure.message.clone());
            let problem = failure.or_else(|| target.problem().map(|problem| problem.message.clone()));
            let name = target.name();
            Some(match problem {
                Some(problem) => format!("its environment, the target {name}, is not removed yet: {problem}"),
                None => format!("its environment, the target {name}, is not removed yet"),
            })
        })
    }
}

impl Drop for ClaimFollower {
    fn drop(&mut self) {
        self.seen.drop_follower(&self.name, &self.wake);
    }
}
