//! Decides on the next state of each target.

use super::binder::{defect, release};
use super::conditions::{Problem, known_problem, set_problem};
use super::pass::Pass;
use super::{Action, CHECK_DEFECTIVE, CHECK_USABLE, NamespaceState, REMOVAL};
use crate::custom_resource::condition::Condition;
use crate::custom_resource::environment::{
    Claim, FINALIZER, OWNER, RELEASED, ReclaimPolicy, Target, TargetPhase, Usability,
};
use crate::names::ObjectName;

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
        self.check(target);
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
            // An administrator has freed the target, so it has no owner any more.
            next.remove_annotation(OWNER);
        }
    }

    /// Checks a target that the service did not make itself, unless it was checked a short time ago.
    fn check(&mut self, target: &'a Target) {
        if target.is_ours() || target.spec.kubernetes_credentials.is_none() {
            return;
        }
        let interval = match self.world.usability(target) {
            Usability::Unchecked => None,
            Usability::Usable => Some(CHECK_USABLE),
            Usability::Defective(_) => Some(CHECK_DEFECTIVE),
        };
        let due =
            interval.and_then(|interval| self.world.checks.get(target.uid())?.at.checked_add(interval).ok());
        match due.filter(|due| self.now < *due) {
            Some(due) => self.look_again(due),
            None => self.done.actions.push(Action::Check(Box::new(target.clone()))),
        }
    }

    /// Returns the defect of a target. While it is unknown, the problem that was known before stays.
    pub(super) fn defect_or_known(&self, target: &Target, known: &[Condition]) -> Option<Problem> {
        match self.world.usability(target) {
            Usability::Unchecked => known_problem(known),
            usability => defect(usability),
        }
    }

    /// Returns the phase of a target that no claim has.
    fn phase_of_free(&self, target: &Target) -> TargetPhase {
        match self.world.usability(target) {
            Usability::Usable => TargetPhase::Available,
            Usability::Unchecked => {
                let known = target.status.phase.filter(|phase| *phase != TargetPhase::Bound);
                known.unwrap_or(TargetPhase::Pending)
            }
            Usability::Defective(defect) if defect.is_final() => TargetPhase::Failed,
            Usability::Defective(_) => TargetPhase::Pending,
        }
    }

    /// Returns the phase of a target, and its problem, if there is one.
    fn phase_of(&self, target: &Target) -> (TargetPhase, Option<Problem>) {
        let found = self.failure(target).or_else(|| self.defect_or_known(target, &target.status.conditions));
        if target.spec.kubernetes_credentials.is_none() {
            let failed = self.world.failures.get(target.uid()).is_some_and(|failure| failure.is_final);
            return (if failed { TargetPhase::Failed } else { TargetPhase::Pending }, found);
        }
        let Some(reference) = &target.spec.claim_ref else {
            let released = target.is_released();
            let phase = if released { TargetPhase::Released } else { self.phase_of_free(target) };
            return (phase, found);
        };
        match self.other_target(target) {
            Some(other) => {
                let message = format!("The claim {} has the target {other} already.", reference.name);
                (self.phase_of_free(target), Some(("ClaimTaken".to_owned(), message)))
            }
            None if target.was_given() => (TargetPhase::Bound, found),
            None => (self.phase_of_free(target), found),
        }
    }

    /// Returns the claim that a target names.
    fn claim_of(&self, target: &Target) -> Option<&'a Claim> {
        let claim = self.world.claims.get(target.spec.claim_ref.as_ref()?.name.as_str());
        claim.filter(|claim| target.is_for(claim))
    }

    /// Returns the target that the target's claim has, if it is another one.
    fn other_target(&self, target: &Target) -> Option<&'a ObjectName> {
        let has = self.claim_of(target)?.spec.target_name.as_ref();
        has.filter(|has| **has != *target.name())
    }

    /// Returns true if the claim that has the target does not seem to exist any more.
    fn is_without_claim(&self, target: &Target) -> bool {
        target.was_given() && self.claim_of(target).is_none()
    }

    /// Returns true if the binder gave the target to a claim that has another one, because the binder had not yet
    /// observed its own first choice.
    fn is_superfluous(&self, target: &Target) -> bool {
        target.was_given() && self.other_target(target).is_some()
    }

    /// Returns a target that the claim has never used. A target that was kept for its owner stays reserved.
    fn return_unused(&mut self, target: &'a Target) {
        let kept = self.world.reclaim_policy(target) == ReclaimPolicy::Retain;
        let next = self.target(target);
        release(next);
        if !kept {
            next.metadata.labels.get_or_insert_default().remove(RELEASED);
        }
    }

    /// Gives up a target whose claim is gone without having released it: the claim's finalizer was removed, or the
    /// claim was deleted while the target was being made.
    fn abandon(&mut self, target: &'a Target) {
        let Some(reference) = &target.spec.claim_ref else { return };
        let then = if self.world.is_deleted_with_claim(target) {
            Action::delete(target)
        } else {
            let mut next = target.clone();
            release(&mut next);
            Action::WriteTarget(Box::new(next))
        };
        let (claim, uid) = (reference.name.clone(), reference.uid.clone().unwrap_or_default());
        self.done.actions.push(Action::IfClaimIsGone { claim, uid, then: Box::new(then) });
    }

    /// Removes the objects of a target that is being deleted, and then its finalizer.
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
            self.failure(target).map(|(_, message)| message)
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
