//! What becomes of each target.

use super::binder::{is_unused, release};
use super::conditions::{Problem, set_problem};
use super::pass::Pass;
use super::{Action, NamespaceState, REMOVAL};
use crate::environment::{FINALIZER, OWNER, RELEASED, ReclaimPolicy, Target, TargetPhase};

impl<'a> Pass<'a> {
    pub(super) fn follow_targets(&mut self) {
        for target in self.world.targets.values() {
            if target.is_deleting() {
                self.remove(target);
            } else {
                self.follow_target(target);
            }
        }
    }

    fn follow_target(&mut self, target: &'a Target) {
        if self.is_without_claim(target) {
            return self.abandon(target);
        }
        if self.is_superfluous(target) {
            return self.return_unused(target);
        }
        let given = self.is_given_away(target);
        let (phase, found) = self.phase_of(target);
        let now = self.now;
        let next = self.target(target);
        next.add_finalizer(FINALIZER);
        set_problem(&mut next.status.conditions, found, now);
        if given {
            return;
        }
        next.status.phase = Some(phase);
        if phase == TargetPhase::Available && target.spec.claim_ref.is_none() {
            // An administrator has freed it, so it is nobody's.
            next.remove_annotation(OWNER);
        }
    }

    /// The phase of a target, and what is wrong with it.
    fn phase_of(&self, target: &Target) -> (TargetPhase, Option<Problem>) {
        let failure = self.world.failures.get(target.uid());
        let found = failure.map(|failure| (failure.reason.clone(), failure.message.clone()));
        if target.spec.kubernetes_credentials.is_none() {
            let failed = failure.is_some_and(|failure| failure.is_final);
            return (if failed { TargetPhase::Failed } else { TargetPhase::Pending }, found);
        }
        let Some(reference) = &target.spec.claim_ref else {
            let released = target.is_released();
            return (if released { TargetPhase::Released } else { TargetPhase::Available }, found);
        };
        let claim = self.world.claims.get(reference.name.as_str()).filter(|claim| target.is_for(claim));
        let other = claim.and_then(|claim| claim.spec.target_name.as_ref());
        match other.filter(|other| **other != *target.name()) {
            Some(other) => {
                let message = format!("The claim {} has the target {other} already.", reference.name);
                (TargetPhase::Available, Some(("ClaimTaken".to_owned(), message)))
            }
            None if reference.uid.is_some() => (TargetPhase::Bound, found),
            None => (TargetPhase::Available, found),
        }
    }

    /// True if the claim that has the target does not seem to exist any more.
    fn is_without_claim(&self, target: &Target) -> bool {
        let Some(reference) = &target.spec.claim_ref else { return false };
        let claim = self.world.claims.get(reference.name.as_str());
        reference.uid.is_some() && !claim.is_some_and(|claim| target.is_for(claim))
    }

    /// True if the binder has given the target to a claim that has another one: it had not seen its own first choice.
    fn is_superfluous(&self, target: &Target) -> bool {
        let Some(reference) = &target.spec.claim_ref else { return false };
        let claim = self.world.claims.get(reference.name.as_str()).filter(|claim| target.is_for(claim));
        let other = claim.and_then(|claim| claim.spec.target_name.as_ref());
        reference.uid.is_some() && other.is_some_and(|other| *other != *target.name())
    }

    /// The claim has never used the target. If it was kept for its owner, it still is.
    fn return_unused(&mut self, target: &'a Target) {
        let kept = self.reclaim_policy(target) == ReclaimPolicy::Retain;
        let next = self.target(target);
        release(next);
        if !kept {
            next.metadata.labels.get_or_insert_default().remove(RELEASED);
        }
    }

    /// The claim is gone without having let its target go: somebody has removed its finalizer, or it was deleted while
    /// the target was being made.
    fn abandon(&mut self, target: &'a Target) {
        let Some(reference) = &target.spec.claim_ref else { return };
        let delete = self.reclaim_policy(target) == ReclaimPolicy::Delete;
        let then = if is_unused(target) || target.is_ours() && delete {
            Action::DeleteTarget { name: target.name().to_owned(), uid: target.uid().to_owned() }
        } else {
            let mut next = target.clone();
            release(&mut next);
            Action::WriteTarget(Box::new(next))
        };
        let (claim, uid) = (reference.name.clone(), reference.uid.clone().unwrap_or_default());
        self.done.actions.push(Action::IfClaimIsGone { claim, uid, then: Box::new(then) });
    }

    /// Removes what belongs to a target that is being deleted, and then lets it go.
    fn remove(&mut self, target: &'a Target) {
        if !target.has_finalizer(FINALIZER) {
            return;
        }
        let state = self.world.namespaces.get(target.uid());
        if !target.is_ours() || state == Some(&NamespaceState::Gone) {
            return self.target(target).remove_finalizer(FINALIZER);
        }
        let stuck = if let Some(NamespaceState::Terminating(stuck)) = state {
            stuck.clone()
        } else {
            self.done.actions.push(Action::Deprovision(Box::new(target.clone())));
            self.world.failures.get(target.uid()).map(|failure| failure.message.clone())
        };
        let begun = target.metadata.deletion_timestamp.as_ref().map_or(self.now, |time| time.0);
        let limit = begun.checked_add(REMOVAL).unwrap_or(self.now);
        if self.now < limit {
            return self.look_again(limit);
        }
        let detail = stuck.unwrap_or_else(|| "Kubernetes does not say why".to_owned());
        let message = format!("The namespace could not be removed within 2 minutes: {detail}");
        let (now, found) = (self.now, Some(("UnableToTerminate".to_owned(), message)));
        let next = self.target(target);
        next.status.phase = Some(TargetPhase::Failed);
        set_problem(&mut next.status.conditions, found, now);
    }
}
