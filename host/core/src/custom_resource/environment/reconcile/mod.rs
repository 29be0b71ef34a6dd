//! Decides on the actions for claims, targets and classes, from all of them at once.
//!
//! The decision is made from the present state alone, and again after every change. So a lost event, a failed write or
//! a restart only costs time. The rules follow those of Kubernetes' volumes and volume claims.

mod binder;
mod conditions;
mod pass;
mod provisioner;
mod targets;
mod usability;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Claim, Class, Environment, NAMESPACE, ReclaimPolicy, Target, TargetCheck};
use crate::names::ObjectName;

use binder::is_unused;
pub(super) use conditions::problem;
use pass::Pass;
pub use usability::Usability;

/// The time that the removal of a target may take before the target counts as failed. The removal continues after that.
const REMOVAL: SignedDuration = SignedDuration::from_mins(2);

/// The time until a defective target is checked again.
const CHECK_DEFECTIVE: SignedDuration = SignedDuration::from_secs(15);
/// The time until a usable target is checked again.
const CHECK_USABLE: SignedDuration = SignedDuration::from_mins(5);

/// All objects on which a decision is based, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    /// All classes.
    pub classes: BTreeMap<String, Class>,
    /// All claims.
    pub claims: BTreeMap<String, Claim>,
    /// All targets.
    pub targets: BTreeMap<String, Target>,
    /// All environments.
    pub environments: BTreeMap<String, Environment>,
    /// The namespaces of targets, by the uid of the target. If a target has no entry, it is unknown whether its
    /// namespace exists.
    pub namespaces: BTreeMap<String, NamespaceState>,
    /// The failure of the last attempt to make or remove the objects of a target, by the uid of the target.
    pub failures: BTreeMap<String, TargetFailure>,
    /// The last check of each target that the service did not make itself, by the uid of the target.
    pub checks: BTreeMap<String, TargetCheck>,
}

impl World {
    /// Returns the class of this name. `delete` and `retain` exist without an object, unless there is one.
    pub fn class(&self, name: &str) -> Option<&Class> {
        self.classes.get(name).or_else(|| Class::built_in(name))
    }

    /// Returns the fate of the target when its claim is deleted. The default is the policy that loses no data.
    pub(in crate::custom_resource::environment) fn reclaim_policy(&self, target: &Target) -> ReclaimPolicy {
        let class = || {
            let class = target.spec.deployment_target_class_name.as_ref()?;
            Some(self.class(class.as_str())?.spec.reclaim_policy)
        };
        target.spec.reclaim_policy.or_else(class).unwrap_or(ReclaimPolicy::Retain)
    }

    /// Returns true if the target is not kept when its claim is deleted.
    fn is_deleted_with_claim(&self, target: &Target) -> bool {
        is_unused(target) || target.is_ours() && self.reclaim_policy(target) == ReclaimPolicy::Delete
    }

    /// Returns true if the namespace that this target needs still belongs to another target, and is being deleted with
    /// that target, or is about to be.
    pub fn is_left_by_another(&self, target: &Target) -> bool {
        let (namespace, cluster) = (target.annotation(NAMESPACE), target.cluster());
        namespace.is_some()
            && self.targets.values().any(|other| {
                other.uid() != target.uid()
                    && (other.annotation(NAMESPACE), other.cluster()) == (namespace, cluster.clone())
                    && self.is_leaving(other)
            })
    }

    /// Returns true if the target is being deleted, or is about to be because its claim is.
    fn is_leaving(&self, target: &Target) -> bool {
        let has_claim = self.claims.values().any(|claim| target.is_for(claim) && !claim.is_deleting());
        target.is_deleting()
            || target.spec.claim_ref.is_some() && !has_claim && self.is_deleted_with_claim(target)
    }
}

/// The state of a target's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespaceState {
    /// The namespace exists.
    Present,
    /// The namespace is being deleted. The text is Kubernetes' explanation of the delay, if there is one.
    Terminating(Option<String>),
    /// The API server has answered that the namespace does not exist, or does not belong to the target.
    Gone,
}

/// The reason why the objects of a target could not be made or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFailure {
    /// The reason in `CamelCase`.
    pub reason: String,
    /// The reason in words.
    pub message: String,
    /// True if another attempt would fail for the same reason.
    pub is_final: bool,
}

/// An action to carry out. Every action can safely be repeated.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Create a target.
    CreateTarget(Box<Target>),
    /// Replace a claim, if it has not changed since.
    WriteClaim(Box<Claim>),
    /// Replace a target, if it has not changed since.
    WriteTarget(Box<Target>),
    /// Replace an environment, if it has not changed since.
    WriteEnvironment(Box<Environment>),
    /// Delete a target. Its objects are then removed.
    DeleteTarget {
        /// The target's name.
        name: String,
        /// The target's uid, so that a later target of the same name is not deleted.
        uid: String,
    },
    /// Carry out another action if the API server, asked directly, does not know this claim. The claim is named by a
    /// target, but is not in the observed state.
    IfClaimIsGone {
        /// The name of the claim.
        claim: ObjectName,
        /// The uid of the claim.
        uid: String,
        /// The action to carry out.
        then: Box<Action>,
    },
    /// Check whether labs can run in a target that the service did not make itself.
    Check(Box<Target>),
    /// Make the objects of a target, and record how it is reached.
    Provision(Box<Target>),
    /// Remove the objects of a target that is being deleted.
    Deprovision(Box<Target>),
}

impl Action {
    /// Creates the action that deletes this target.
    pub(super) fn delete(target: &Target) -> Self {
        Self::DeleteTarget { name: target.name().to_owned(), uid: target.uid().to_owned() }
    }

    /// Returns the kind and name of the object that the action is about. While one action on an object is under way, no
    /// other action on it may begin.
    pub fn about(&self) -> (&'static str, &str) {
        match self {
            Self::WriteClaim(claim) => ("claim", claim.name()),
            Self::WriteEnvironment(environment) => ("environment", environment.name()),
            Self::CreateTarget(target)
            | Self::WriteTarget(target)
            | Self::Provision(target)
            | Self::Deprovision(target) => ("target", target.name()),
            // A check changes nothing, so it delays no other action on the target.
            Self::Check(target) => ("check", target.uid()),
            Self::DeleteTarget { name, .. } => ("target", name),
            Self::IfClaimIsGone { then, .. } => then.about(),
        }
    }
}

/// The actions to carry out now, and the time of the next look even if nothing changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reconciled {
    /// The actions to carry out.
    pub actions: Vec<Action>,
    /// The time at which the decision may change without any new observation.
    pub again_at: Option<Timestamp>,
}

/// Decides on the actions to carry out. `fresh` returns a new short random text at each call: letters and digits, for
/// the names of namespaces.
pub fn reconcile(world: &World, now: Timestamp, fresh: &mut dyn FnMut() -> String) -> Reconciled {
    let mut pass = Pass::new(world, now);
    pass.follow_claims();
    pass.follow_targets();
    pass.provision(fresh);
    pass.keep_pools(fresh);
    pass.show_environments();
    pass.end()
}
