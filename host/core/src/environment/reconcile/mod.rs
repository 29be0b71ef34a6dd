//! Decides what is to be done about claims, targets and classes, from all of them at once.
//!
//! The decision is made from the present state alone, and again after every change. So a lost event, a failed write or a
//! restart only costs time. The rules follow those of Kubernetes' volumes and volume claims.

mod binder;
mod conditions;
mod pass;
mod provisioner;
mod targets;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Claim, Class, Environment, NAMESPACE, ReclaimPolicy, Target};
use crate::names::ObjectName;

use binder::is_unused;
pub(super) use conditions::problem;
use pass::Pass;

/// How long the removal of a target may take before the target counts as failed. It goes on after that.
const REMOVAL: SignedDuration = SignedDuration::from_mins(2);

/// Everything that a decision is made from. Objects are found by their names.
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
    /// The namespaces of targets, by the uid of the target. Of others, it is not known whether they exist.
    pub namespaces: BTreeMap<String, NamespaceState>,
    /// Why the last attempt to make or remove what belongs to a target has failed, by the uid of the target.
    pub failures: BTreeMap<String, TargetFailure>,
}

impl World {
    /// The class of this name. `delete` and `retain` exist without an object, unless there is one.
    pub fn class(&self, name: &str) -> Option<&Class> {
        self.classes.get(name).or_else(|| Class::built_in(name))
    }

    /// What becomes of the target when its claim is deleted. Where nobody says it, nothing is lost.
    pub(in crate::environment) fn reclaim_policy(&self, target: &Target) -> ReclaimPolicy {
        let class = || {
            let class = target.spec.deployment_target_class_name.as_ref()?;
            Some(self.class(class.as_str())?.spec.reclaim_policy)
        };
        target.spec.reclaim_policy.or_else(class).unwrap_or(ReclaimPolicy::Retain)
    }

    /// True if the target is not kept when its claim is deleted.
    fn is_deleted_with_claim(&self, target: &Target) -> bool {
        is_unused(target) || target.is_ours() && self.reclaim_policy(target) == ReclaimPolicy::Delete
    }

    /// True if another target has the namespace that this one needs, and is deleted with it, or about to be.
    pub fn is_left_by_another(&self, target: &Target) -> bool {
        let (namespace, cluster) = (target.annotation(NAMESPACE), target.cluster());
        namespace.is_some()
            && self.targets.values().any(|other| {
                other.uid() != target.uid()
                    && (other.annotation(NAMESPACE), other.cluster()) == (namespace, cluster.clone())
                    && self.is_leaving(other)
            })
    }

    /// True if the target is being deleted, or is about to be because its claim is.
    fn is_leaving(&self, target: &Target) -> bool {
        let has_claim = self.claims.values().any(|claim| target.is_for(claim) && !claim.is_deleting());
        target.is_deleting()
            || target.spec.claim_ref.is_some() && !has_claim && self.is_deleted_with_claim(target)
    }
}

/// The namespace of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespaceState {
    /// It exists.
    Present,
    /// It is being deleted. In the words of Kubernetes, why that takes so long, if it says so.
    Terminating(Option<String>),
    /// The API server has answered that it does not exist, or is not the target's.
    Gone,
}

/// Why what belongs to a target could not be made or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFailure {
    /// The reason in `CamelCase`.
    pub reason: String,
    /// The reason in words.
    pub message: String,
    /// True if another attempt would fail for the same reason.
    pub is_final: bool,
}

/// Something to be done. Every action can safely be repeated.
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
    /// Delete a target: what belongs to it is then removed.
    DeleteTarget {
        /// Its name.
        name: String,
        /// Its uid, so that no later target of the name is deleted.
        uid: String,
    },
    /// A claim that a target names is not known. If the API server, asked directly, does not know it either, do this.
    IfClaimIsGone {
        /// The name of the claim.
        claim: ObjectName,
        /// The uid of the claim.
        uid: String,
        /// What to do.
        then: Box<Action>,
    },
    /// Make what belongs to a target, and write down how it is reached.
    Provision(Box<Target>),
    /// Remove what belongs to a target that is being deleted.
    Deprovision(Box<Target>),
}

impl Action {
    /// Deletes this target.
    pub(super) fn delete(target: &Target) -> Self {
        Self::DeleteTarget { name: target.name().to_owned(), uid: target.uid().to_owned() }
    }

    /// The object that the action is about: its kind and name. While one action on an object is under way, no other is
    /// to begin.
    pub fn about(&self) -> (&'static str, &str) {
        match self {
            Self::WriteClaim(claim) => ("claim", claim.name()),
            Self::WriteEnvironment(environment) => ("environment", environment.name()),
            Self::CreateTarget(target)
            | Self::WriteTarget(target)
            | Self::Provision(target)
            | Self::Deprovision(target) => ("target", target.name()),
            Self::DeleteTarget { name, .. } => ("target", name),
            Self::IfClaimIsGone { then, .. } => then.about(),
        }
    }
}

/// What is to be done now, and when to look again although nothing has changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reconciled {
    /// What is to be done.
    pub actions: Vec<Action>,
    /// When a decision may change by the passing of time alone.
    pub again_at: Option<Timestamp>,
}

/// Decides what is to be done. `fresh` returns a new short random text at each call: letters and digits, for the names
/// of namespaces.
pub fn reconcile(world: &World, now: Timestamp, fresh: &mut dyn FnMut() -> String) -> Reconciled {
    let mut pass = Pass::new(world, now);
    pass.follow_claims();
    pass.follow_targets();
    pass.provision(fresh);
    pass.keep_pools(fresh);
    pass.show_environments();
    pass.end()
}
