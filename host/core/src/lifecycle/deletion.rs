//! Deleting a lab: the pod first, then everything else. Shared by a stop, the cleaning after a failure and the
//! cleaning before a spawn.

use super::{Effect, Lab};

/// Where a deletion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteStep {
    /// Waiting for a creation under way to end, so that nothing is created behind the deletion's back.
    Draining,
    /// Waiting for the pod to go.
    Pod,
    /// Waiting for the rest to go.
    Rest,
}

/// What a deletion needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deletion {
    /// It goes on.
    Continue(DeleteStep),
    /// Nothing is left.
    Done,
}

impl Deletion {
    /// Where it is, unless it is over.
    pub(super) fn step(self) -> Option<DeleteStep> {
        match self {
            Self::Continue(step) => Some(step),
            Self::Done => None,
        }
    }
}

impl Lab {
    /// Begins deleting what the cluster is known to have.
    pub(super) fn begin_deletion(&self, effects: &mut Vec<Effect>) -> Deletion {
        if self.applying {
            effects.push(Effect::CancelApply);
            Deletion::Continue(DeleteStep::Draining)
        } else if !self.pod.is_missing() {
            effects.push(Effect::DeletePod);
            Deletion::Continue(DeleteStep::Pod)
        } else if !self.rest.is_missing() {
            effects.push(Effect::DeleteRest);
            Deletion::Continue(DeleteStep::Rest)
        } else {
            Deletion::Done
        }
    }

    /// Goes on as far as the cluster has come.
    pub(super) fn continue_deletion(&self, step: DeleteStep, effects: &mut Vec<Effect>) -> Deletion {
        match step {
            DeleteStep::Draining if self.applying => Deletion::Continue(DeleteStep::Draining),
            DeleteStep::Pod if !self.pod.is_missing() => Deletion::Continue(DeleteStep::Pod),
            DeleteStep::Rest if self.pod.is_missing() && !self.rest.is_missing() => {
                Deletion::Continue(DeleteStep::Rest)
            }
            DeleteStep::Draining | DeleteStep::Pod | DeleteStep::Rest => self.begin_deletion(effects),
        }
    }
}
