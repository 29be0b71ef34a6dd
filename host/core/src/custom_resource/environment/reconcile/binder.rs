//! The binder: joins claims and targets, one to one.

use super::Action;
use super::conditions::Problem;
use super::pass::{Pass, is_ready};
use super::provisioner::provisioning_problem;
use crate::custom_resource::environment::{
    BIND_COMPLETE, BOUND_BY_CONTROLLER, Claim, ClaimPhase, ClaimRef, DT_PROVISIONER, FINALIZER, IN_POOL,
    NAMESPACE_PROVISIONER, OWNER, RELEASED, ReclaimPolicy, Target, TargetPhase, Usability,
};
use crate::names::ObjectName;

impl<'a> Pass<'a> {
    /// Processes all claims, the oldest first.
    pub(super) fn follow_claims(&mut self) {
        let mut claims: Vec<&'a Claim> = self.world.claims.values().collect();
        claims.sort_by_key(|claim| claim.created_at());
        for claim in claims {
            if claim.is_deleting() {
                self.let_go(claim);
            } else {
                self.follow_claim(claim);
            }
        }
    }

    fn follow_claim(&mut self, claim: &'a Claim) {
        let mut next = claim.clone();
        next.add_finalizer(FINALIZER);
        match &claim.spec.target_name {
            Some(name) => self.follow_named(claim, next, name),
            None => self.find_target(claim, next),
        }
    }

    /// Processes a claim for which the owner, or the binder, has named a target.
    fn follow_named(&mut self, claim: &'a Claim, next: Claim, name: &ObjectName) {
        let waiting = if claim.was_bound() { ClaimPhase::Lost } else { ClaimPhase::Pending };
        let Some(target) = self.world.targets.get(name.as_str()) else {
            return self.write_claim(claim, next, waiting, None);
        };
        let of_another =
            target.spec.claim_ref.is_some() && !target.is_for(claim) || self.is_given_away(target);
        if of_another {
            let message = format!("The target {name} has another claim.");
            return self.write_claim(claim, next, waiting, Some(("TargetTaken".to_owned(), message)));
        }
        if target.is_released() && !is_of_owner(target, claim) {
            let message = format!("The target {name} was released, and is kept for its owner.");
            return self.write_claim(claim, next, waiting, Some(("TargetReleased".to_owned(), message)));
        }
        if claim.is_bound() && target.is_deleting() {
            return;
        }
        self.bind(claim, next, target, waiting);
    }

    /// Processes a claim that takes any target of its class.
    fn find_target(&mut self, claim: &'a Claim, mut next: Claim) {
        let reference = ClaimRef::from_claim(claim);
        let holders = self.holders(claim);
        // A target that the binder has already given to the claim comes before targets whose owners only name the
        // claim.
        if let Some(target) = holders.iter().find(|target| target.spec.claim_ref == reference) {
            return self.bind(claim, next, target, ClaimPhase::Pending);
        }
        match holders.as_slice() {
            [] => {}
            [target] => return self.bind(claim, next, target, ClaimPhase::Pending),
            [first, second, ..] => {
                let message = format!(
                    "Several targets name this claim, such as {} and {}; only one may.",
                    first.name(),
                    second.name()
                );
                let found = ("SeveralTargets".to_owned(), message);
                return self.write_claim(claim, next, ClaimPhase::Pending, Some(found));
            }
        }
        if !claim.is_dynamic() {
            if let Some(kept) = self.kept_and_unusable(claim) {
                let found = defect(self.world.usability(kept));
                return self.write_claim(claim, next, ClaimPhase::Pending, found);
            }
            if let Some(target) = self.take_free(claim) {
                return self.bind(claim, next, target, ClaimPhase::Pending);
            }
        }
        let unusable = self.free_and_unusable(claim);
        let usability = unusable.map(|target| self.world.usability(target));
        let may_pass = match usability {
            Some(Usability::Unchecked) => true,
            Some(Usability::Defective(defect)) => !defect.is_final() && !self.has_built_in_provisioner(claim),
            _ => false,
        };
        // A claim that is marked for a provisioner takes no target of the site's any more.
        let found = if may_pass && !claim.is_dynamic() { None } else { self.ask_provisioner(&mut next) };
        let found = found.or_else(|| {
            let made = next.annotation(DT_PROVISIONER) == Some(NAMESPACE_PROVISIONER);
            no_usable_target(unusable.filter(|_| !made)?, usability?)
        });
        self.write_claim(claim, next, ClaimPhase::Pending, found);
    }

    fn has_built_in_provisioner(&self, claim: &Claim) -> bool {
        let class = claim.spec.deployment_target_class_name.as_ref();
        let class = class.and_then(|class| self.world.class(class.as_str()));
        class.is_some_and(|class| class.spec.provisioner == NAMESPACE_PROVISIONER)
            && claim.spec.selector.is_none()
    }

    /// Marks the claim for the provisioner of its class. Returns the obstacle, if there is one.
    fn ask_provisioner(&self, next: &mut Claim) -> Option<Problem> {
        let name = next.spec.deployment_target_class_name.clone()?;
        if next.spec.selector.is_some() {
            return None;
        }
        let Some(class) = self.world.class(name.as_str()) else {
            let message = format!("There is no DeploymentTargetClass {name}.");
            return Some(("ClassNotFound".to_owned(), message));
        };
        if !next.is_dynamic() {
            next.annotate(DT_PROVISIONER, &class.spec.provisioner);
        }
        provisioning_problem(next, class)
    }

    /// Binds claim and target. The target is written first, so that it can never belong to two claims. The claim is
    /// written when the new state of the target is observed.
    fn bind(&mut self, claim: &'a Claim, mut next: Claim, target: &'a Target, otherwise: ClaimPhase) {
        if !is_ready(target) {
            let found = self.failure(target);
            return self.write_claim(claim, next, otherwise, found);
        }
        let reference = ClaimRef::from_claim(claim);
        if reference.is_some() && target.spec.claim_ref == reference {
            if claim.spec.target_name.is_none() {
                next.spec.target_name = ObjectName::parse(target.name()).ok();
                next.annotate(BOUND_BY_CONTROLLER, "true");
            }
            next.annotate(BIND_COMPLETE, "true");
            let found = self.defect_or_known(target, &claim.status.conditions);
            return self.write_claim(claim, next, ClaimPhase::Bound, found);
        }
        let usability = self.world.usability(target);
        if usability != Usability::Usable {
            return self.write_claim(claim, next, otherwise, defect(usability));
        }
        let owner = claim.annotation(OWNER).map(str::to_owned);
        let target = self.target(target);
        target.spec.claim_ref = reference;
        target.status.phase = Some(TargetPhase::Bound);
        target.metadata.labels.get_or_insert_default().remove(RELEASED);
        target.remove_annotation(IN_POOL);
        match owner {
            Some(owner) => target.annotate(OWNER, &owner),
            None => target.remove_annotation(OWNER),
        }
    }

    /// Reclaims the target of a claim that is being deleted, according to the reclaim policy.
    fn let_go(&mut self, claim: &'a Claim) {
        if !claim.has_finalizer(FINALIZER) {
            return;
        }
        // A target is left unchanged if it only names the claim and was not bound to it.
        let reference = ClaimRef::from_claim(claim);
        let mut bound = self.holders(claim);
        bound.retain(|target| target.spec.claim_ref == reference);
        if bound.is_empty() {
            let mut next = claim.clone();
            next.remove_finalizer(FINALIZER);
            self.done.actions.push(Action::WriteClaim(Box::new(next)));
        }
        for target in bound.into_iter().filter(|target| !target.is_deleting()) {
            if is_unused(target) || self.world.reclaim_policy(target) == ReclaimPolicy::Delete {
                self.done.actions.push(Action::delete(target));
            } else {
                release(self.target(target));
            }
        }
    }
}

/// Returns the defect as a problem.
pub(super) fn defect(usability: Usability<'_>) -> Option<Problem> {
    match usability {
        Usability::Defective(defect) => Some((defect.reason().to_owned(), defect.to_string())),
        Usability::Usable | Usability::Unchecked => None,
    }
}

/// Returns the obstacle of a claim for which there would be a target, if labs could run in it.
fn no_usable_target(target: &Target, usability: Usability<'_>) -> Option<Problem> {
    let (_, why) = defect(usability)?;
    let message = format!("No target of the class is free and usable; the target {}: {why}", target.name());
    Some(("NoUsableTarget".to_owned(), message))
}

/// Returns true if the target was made for a claim that has never had it.
pub(super) fn is_unused(target: &Target) -> bool {
    target.is_ours() && matches!(target.status.phase, None | Some(TargetPhase::Pending | TargetPhase::Failed))
}

/// Releases the target, and keeps it for its owner.
pub(super) fn release(target: &mut Target) {
    target.spec.claim_ref = None;
    target.status.phase = Some(TargetPhase::Released);
    target.metadata.labels.get_or_insert_default().insert(RELEASED.to_owned(), "true".to_owned());
}

fn is_of_owner(target: &Target, claim: &Claim) -> bool {
    target.annotation(OWNER).is_some_and(|owner| claim.annotation(OWNER) == Some(owner))
}
