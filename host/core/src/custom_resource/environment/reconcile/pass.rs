//! One pass over all objects.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;

use super::conditions::{Problem, known_problem, set_problem};
use super::{Action, Reconciled, World};
use crate::custom_resource::environment::{
    Claim, ClaimPhase, Environment, EnvironmentPhase, OWNER, Target, Usability,
};

/// One pass over all objects: its input, and the decisions so far.
pub(super) struct Pass<'a> {
    pub(super) world: &'a World,
    pub(super) now: Timestamp,
    /// Targets that refer to a claim, by the claim's name.
    holders: BTreeMap<&'a str, Vec<&'a Target>>,
    /// Free targets by class: those without an owner, and those that are kept for their owner.
    free: BTreeMap<Option<&'a str>, ByOwner<'a, Aged<'a>>>,
    /// Free targets in which labs cannot run, or not yet, by class; those that are still to be checked come first.
    unusable: BTreeMap<Option<&'a str>, ByOwner<'a, VecDeque<&'a Target>>>,
    /// Targets to write.
    changed: BTreeMap<&'a str, Target>,
    pub(super) done: Reconciled,
}

/// Targets by age: the time of their creation, and their names.
type Aged<'a> = BTreeSet<(Option<Timestamp>, &'a str)>;

/// The free targets of one class: those without an owner, and those that are kept for their owners.
#[derive(Default)]
struct ByOwner<'a, T> {
    of_nobody: T,
    of_owners: BTreeMap<&'a str, T>,
}

impl<'a, T: Default> ByOwner<'a, T> {
    /// Returns the targets among which this one is; `None` if its former owner is unknown, so that no claim gets it.
    fn beside(&mut self, target: &'a Target) -> Option<&mut T> {
        match (target.is_released(), target.annotation(OWNER)) {
            (false, _) => Some(&mut self.of_nobody),
            (true, Some(owner)) => Some(self.of_owners.entry(owner).or_default()),
            (true, None) => None,
        }
    }
}

impl<'a> Pass<'a> {
    pub(super) fn new(world: &'a World, now: Timestamp) -> Self {
        let mut pass = Self {
            world,
            now,
            holders: BTreeMap::new(),
            free: BTreeMap::new(),
            unusable: BTreeMap::new(),
            changed: BTreeMap::new(),
            done: Reconciled::default(),
        };
        for target in world.targets.values() {
            match &target.spec.claim_ref {
                Some(claim) => pass.holders.entry(claim.name.as_str()).or_default().push(target),
                None if !is_ready(target) => {}
                None if world.usability(target) == Usability::Usable => pass.add_free(target),
                None => pass.add_unusable(target),
            }
        }
        pass
    }

    fn add_free(&mut self, target: &'a Target) {
        if let Some(free) = self.free.entry(class_of(target)).or_default().beside(target) {
            free.insert((target.created_at(), target.name()));
        }
    }

    fn add_unusable(&mut self, target: &'a Target) {
        let Some(unusable) = self.unusable.entry(class_of(target)).or_default().beside(target) else {
            return;
        };
        // A target that is still to be checked may be usable in a moment.
        match self.world.usability(target) {
            Usability::Unchecked => unusable.push_front(target),
            _ => unusable.push_back(target),
        }
    }

    /// Returns the targets that refer to this claim.
    pub(super) fn holders(&self, claim: &Claim) -> Vec<&'a Target> {
        let named = self.holders.get(claim.name()).into_iter().flatten();
        named.filter(|target| target.is_for(claim)).copied().collect()
    }

    /// Takes the best free target for a claim: one that its owner had before, or else the oldest that the claim accepts.
    /// No other claim gets the target in this pass.
    pub(super) fn take_free(&mut self, claim: &'a Claim) -> Option<&'a Target> {
        let free = self.free.get_mut(&class_of_claim(claim))?;
        let world = self.world;
        let take = |from: &mut Aged<'a>| {
            let entry = *from.iter().find(|(_, name)| {
                world.targets.get(*name).is_some_and(|it| claim.accepts(it.metadata.labels.as_ref()))
            })?;
            from.remove(&entry);
            world.targets.get(entry.1)
        };
        let of_owner = claim.annotation(OWNER).and_then(|owner| take(free.of_owners.get_mut(owner)?));
        of_owner.or_else(|| take(&mut free.of_nobody))
    }

    /// Returns the target that was kept for the claim's owner, if labs cannot run in it now.
    pub(super) fn kept_and_unusable(&self, claim: &Claim) -> Option<&'a Target> {
        let of_class = self.unusable.get(&class_of_claim(claim))?;
        first_accepted(of_class.of_owners.get(claim.annotation(OWNER)?)?, claim)
    }

    /// Returns a free target that the claim would take if labs could run in it.
    pub(super) fn free_and_unusable(&self, claim: &Claim) -> Option<&'a Target> {
        first_accepted(&self.unusable.get(&class_of_claim(claim))?.of_nobody, claim)
    }

    /// Returns the desired state of a target, as decided so far.
    pub(super) fn target(&mut self, target: &'a Target) -> &mut Target {
        self.changed.entry(target.name()).or_insert_with(|| target.clone())
    }

    /// Returns true if this pass changes the claim of a target.
    pub(super) fn is_given_away(&self, target: &Target) -> bool {
        self.changed.get(target.name()).is_some_and(|next| next.spec.claim_ref != target.spec.claim_ref)
    }

    pub(super) fn write_claim(
        &mut self,
        claim: &Claim,
        mut next: Claim,
        phase: ClaimPhase,
        found: Option<Problem>,
    ) {
        next.status.phase = Some(phase);
        set_problem(&mut next.status.conditions, found, self.now);
        if next != *claim {
            self.done.actions.push(Action::WriteClaim(Box::new(next)));
        }
    }

    /// Returns the failure of the last attempt to make or remove the objects of a target.
    pub(super) fn failure(&self, target: &Target) -> Option<Problem> {
        let failure = self.world.failures.get(target.uid())?;
        Some((failure.reason.clone(), failure.message.clone()))
    }

    /// Schedules another look at `at`, even if nothing happens before.
    pub(super) fn look_again(&mut self, at: Timestamp) {
        self.done.again_at = Some(self.done.again_at.map_or(at, |known| known.min(at)));
    }

    pub(super) fn show_environments(&mut self) {
        for environment in self.world.environments.values() {
            let claim = self.world.claims.get(environment.claim_name().as_str());
            let phase = if claim.is_some_and(Claim::is_bound) {
                EnvironmentPhase::Bound
            } else {
                EnvironmentPhase::Unbound
            };
            let found = claim.and_then(|claim| known_problem(&claim.status.conditions));
            let mut next = Environment::clone(environment);
            next.status.phase = Some(phase);
            set_problem(&mut next.status.conditions, found, self.now);
            if next != *environment {
                self.done.actions.push(Action::WriteEnvironment(Box::new(next)));
            }
        }
    }

    pub(super) fn end(mut self) -> Reconciled {
        for (name, next) in self.changed {
            if self.world.targets.get(name) != Some(&next) {
                self.done.actions.push(Action::WriteTarget(Box::new(next)));
            }
        }
        self.done
    }
}

fn first_accepted<'a>(targets: &VecDeque<&'a Target>, claim: &Claim) -> Option<&'a Target> {
    targets.iter().find(|target| claim.accepts(target.metadata.labels.as_ref())).copied()
}

fn class_of(target: &Target) -> Option<&str> {
    target.spec.deployment_target_class_name.as_ref().map(AsRef::as_ref)
}

fn class_of_claim(claim: &Claim) -> Option<&str> {
    claim.spec.deployment_target_class_name.as_ref().map(AsRef::as_ref)
}

/// Returns true if the data to reach the target is known, and the target is not being deleted.
pub(super) fn is_ready(target: &Target) -> bool {
    !target.is_deleting() && target.spec.kubernetes_credentials.is_some()
}
