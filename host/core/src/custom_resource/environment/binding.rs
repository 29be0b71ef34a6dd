//! The state of a claim, as its lab needs it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Claim, ClaimPhase, ClusterRef, ReclaimPolicy, Target, TargetDefect, TargetPhase, Usability, World,
};
use crate::names::NamespaceName;

/// The progress of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimState {
    /// The claim does not exist.
    Absent,
    /// The claim has no target yet. The text names an obstacle that may pass, if there is one.
    Waiting(Option<String>),
    /// The claim has a target.
    Bound(Binding),
    /// The claim will not get a target unless somebody intervenes. The fields are the reason in `CamelCase`, and in
    /// words.
    Failed(String, String),
}

/// The target of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The target's namespace.
    pub namespace: NamespaceName,
    /// The reference to the target's cluster; `None` for the service's own cluster.
    pub cluster: Option<ClusterRef>,
    /// The fate of the namespace when the claim is deleted.
    pub fate: NamespaceFate,
}

/// What becomes of the namespace of a claim when a lab in it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum NamespaceFate {
    /// The namespace is deleted with the claim.
    Deleted,
    /// The lab's objects are deleted. The namespace stays, for the same owner.
    Retained,
    /// The lab's objects are deleted. The namespace is not the lab's: others may use it, too.
    Shared,
}

impl World {
    /// Returns the state of the claim of this name.
    pub fn claim_state(&self, name: &str) -> ClaimState {
        let Some(claim) = self.claims.get(name) else { return ClaimState::Absent };
        let target = claim.spec.target_name.as_ref().and_then(|target| self.targets.get(target.as_str()));
        if let (Some(ClaimPhase::Bound), Some(target)) = (claim.status.phase, target)
            && let Some(binding) = self.binding(target)
        {
            return match self.usability(target) {
                // An unchecked target was checked before it was bound.
                Usability::Usable | Usability::Unchecked => ClaimState::Bound(binding),
                Usability::Defective(defect) if defect.is_final() => {
                    ClaimState::Failed(defect.reason().to_owned(), defect.to_string())
                }
                Usability::Defective(defect) => ClaimState::Waiting(Some(defect.to_string())),
            };
        }
        if let Some((reason, message)) = self.failure_of(claim) {
            return ClaimState::Failed(reason, message);
        }
        ClaimState::Waiting(claim.problem().map(|problem| problem.message.clone()))
    }

    fn binding(&self, target: &Target) -> Option<Binding> {
        let namespace = target.spec.kubernetes_credentials.as_ref()?.default_namespace.clone();
        let fate = match self.reclaim_policy(target) {
            _ if !target.is_ours() => NamespaceFate::Shared,
            ReclaimPolicy::Delete => NamespaceFate::Deleted,
            ReclaimPolicy::Retain => NamespaceFate::Retained,
        };
        Some(Binding { namespace, cluster: target.cluster(), fate })
    }

    /// Returns the reason why waiting for a target is useless, if there is one.
    fn failure_of(&self, claim: &Claim) -> Option<(String, String)> {
        let being_made = self.targets.get(&claim.name_of_made_target());
        let failed = being_made.filter(|target| target.status.phase == Some(TargetPhase::Failed));
        let of_target = failed.and_then(|target| super::reconcile::problem(&target.status.conditions));
        // These findings of the binder are about mistakes in the objects, so they do not pass by themselves.
        let wrong = ["ClassNotFound", "InvalidClass", "TargetTaken", "TargetReleased", "SeveralTargets"];
        let is_final = |reason: &str| wrong.contains(&reason) || TargetDefect::is_final_reason(reason);
        let of_claim = claim.problem().filter(|problem| is_final(&problem.reason));
        of_target.or(of_claim).map(|problem| (problem.reason.clone(), problem.message.clone()))
    }
}
