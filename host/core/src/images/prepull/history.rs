use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::Pull;
use crate::images::{ImageReference, NodeImages};

/// The pause after the first failure of a pull. It doubles with each further failure.
const FIRST_WAIT: SignedDuration = SignedDuration::from_mins(1);
/// The longest pause.
const MAX_WAIT: SignedDuration = SignedDuration::from_hours(1);
/// The time for which a node counts as having an image that it has pulled and does not list. Kubelets list only their
/// largest images, by default fifty.
const UNLISTED: SignedDuration = SignedDuration::from_hours(6);
/// The time after which earlier failures of an image that its node keeps are no longer counted.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// The results of pulls. The history is only kept while the service runs: without it, a pull is repeated once more than
/// necessary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullHistory {
    last: BTreeMap<Pull, LastAttempt>,
}

/// The last attempt of a pull, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LastAttempt {
    at: Timestamp,
    outcome: Outcome,
    /// The number of failures since the image was last kept.
    failures: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Pulled,
    /// The node has listed the image since the pull.
    Listed,
    Failed {
        reason: String,
    },
}

/// A failed pull that will be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedPull {
    /// The pull that failed.
    pub pull: Pull,
    /// The number of failed attempts since the last success.
    pub attempts: u32,
    /// The time of the last attempt.
    pub at: Timestamp,
    /// The reason of the last failure.
    pub reason: String,
    /// The earliest time of the next attempt.
    pub again_at: Timestamp,
}

impl PullHistory {
    /// Records that a node has pulled an image.
    pub fn pulled(&mut self, pull: Pull, now: Timestamp) {
        let failures = self.attempts(&pull);
        self.last.insert(pull, LastAttempt { at: now, outcome: Outcome::Pulled, failures });
    }

    /// Records that a pull has failed.
    pub fn failed(&mut self, pull: Pull, reason: String, now: Timestamp) {
        let failures = self.attempts(&pull).saturating_add(1);
        self.last.insert(pull, LastAttempt { at: now, outcome: Outcome::Failed { reason }, failures });
    }

    /// Returns the number of failures of a pull since the image was last kept.
    pub fn attempts(&self, pull: &Pull) -> u32 {
        self.last.get(pull).map_or(0, |ended| ended.failures)
    }

    /// Compares the results of pulls with the present images of the nodes. An image that a node has removed counts as a
    /// failure, because the node may remove the next one as well. Entries of images that are not needed any more are
    /// dropped.
    pub fn observe<'a>(
        &mut self,
        needed: impl IntoIterator<Item = &'a ImageReference>,
        nodes: &NodeImages,
        now: Timestamp,
    ) {
        let needed: BTreeSet<&ImageReference> = needed.into_iter().collect();
        self.last.retain(|pull, ended| {
            let Some(node) = nodes.node(&pull.node) else { return false };
            // A new node may have the name of an old one.
            let is_another = node.created.is_some_and(|created| created > ended.at);
            if is_another || !needed.contains(&pull.image) {
                return false;
            }
            match (&ended.outcome, node.has(&pull.image)) {
                (Outcome::Failed { .. }, true) => return false,
                (Outcome::Pulled, true) => ended.outcome = Outcome::Listed,
                (Outcome::Listed, true) if now.duration_since(ended.at) > KEPT => ended.failures = 0,
                (Outcome::Listed, false) => {
                    let reason =
                        "the node has removed the image, as it does when its disk is full".to_owned();
                    let failures = ended.failures.saturating_add(1);
                    *ended = LastAttempt { at: now, outcome: Outcome::Failed { reason }, failures };
                }
                _ => {}
            }
            true
        });
    }

    /// Returns the time at which the pull last ended.
    pub(super) fn tried_at(&self, pull: &Pull) -> Option<Timestamp> {
        self.last.get(pull).map(|ended| ended.at)
    }

    /// Returns true if the pull ended so recently that it must not begin again yet.
    pub(super) fn is_waiting(&self, pull: &Pull, now: Timestamp) -> bool {
        self.last.get(pull).is_some_and(|ended| now < ended.again_at())
    }

    /// Returns true if the node pulled the image so recently that it counts as having it, although it does not list it.
    pub(super) fn has_pulled(&self, pull: &Pull, now: Timestamp) -> bool {
        self.last.get(pull).is_some_and(|last| last.outcome == Outcome::Pulled && now < last.again_at())
    }

    /// Returns the failed pulls that will be repeated.
    pub fn failures(&self) -> impl Iterator<Item = FailedPull> {
        self.last.iter().filter_map(|(pull, ended)| {
            let Outcome::Failed { reason } = &ended.outcome else { return None };
            Some(FailedPull {
                pull: pull.clone(),
                attempts: ended.failures,
                at: ended.at,
                reason: reason.clone(),
                again_at: ended.again_at(),
            })
        })
    }
}

impl LastAttempt {
    fn again_at(&self) -> Timestamp {
        let wait = match self.outcome {
            Outcome::Pulled => UNLISTED,
            Outcome::Listed => SignedDuration::ZERO,
            Outcome::Failed { .. } => {
                let doubled = 2_i32.saturating_pow(self.failures.saturating_sub(1).min(20));
                FIRST_WAIT.checked_mul(doubled).unwrap_or(MAX_WAIT).min(MAX_WAIT)
            }
        };
        self.at.checked_add(wait).unwrap_or(Timestamp::MAX)
    }
}
