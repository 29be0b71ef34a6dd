use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::Pull;
use crate::images::{ImageReference, NodeImages};

/// How long after its first failure a pull is tried again. The wait doubles with each further failure.
const FIRST_WAIT: SignedDuration = SignedDuration::from_mins(1);
/// The longest wait.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_hours(1);
/// How long a node is taken to have an image that it has pulled and does not list: kubelets list only their largest
/// images, fifty unless they are told otherwise.
const UNLISTED: SignedDuration = SignedDuration::from_hours(6);
/// An image that a node has kept for so long is not counted among its failures if it goes.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// How pulls have ended. It is only kept while the service runs: without it, a pull is tried once too often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullHistory {
    last: BTreeMap<Pull, LastAttempt>,
}

/// The last time that something was pulled, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LastAttempt {
    at: Timestamp,
    outcome: Outcome,
    /// How often it has failed, without an image that was kept in between.
    failures: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Pulled,
    /// The node has reported the image since.
    Listed,
    Failed {
        reason: String,
    },
}

/// A pull that has failed and is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedPull {
    /// What was to be pulled.
    pub pull: Pull,
    /// How often, without a success in between.
    pub attempts: u32,
    /// The last time.
    pub at: Timestamp,
    /// Why, the last time.
    pub reason: String,
    /// It is not tried again before this time.
    pub again_at: Timestamp,
}

impl PullHistory {
    /// Notes that a node has pulled an image.
    pub fn pulled(&mut self, pull: Pull, now: Timestamp) {
        let failures = self.attempts(&pull);
        self.last.insert(pull, LastAttempt { at: now, outcome: Outcome::Pulled, failures });
    }

    /// Notes that a pull has failed.
    pub fn failed(&mut self, pull: Pull, reason: String, now: Timestamp) {
        let failures = self.attempts(&pull).saturating_add(1);
        self.last.insert(pull, LastAttempt { at: now, outcome: Outcome::Failed { reason }, failures });
    }

    /// How often a pull has failed, without an image that was kept in between.
    pub fn attempts(&self, pull: &Pull) -> u32 {
        self.last.get(pull).map_or(0, |ended| ended.failures)
    }

    /// Compares what has ended with what nodes have now. An image that a node has removed counts as a failure, because
    /// it may remove the next one as well; what nobody needs any more is forgotten.
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

    /// When the pull has ended the last time.
    pub(super) fn tried_at(&self, pull: &Pull) -> Option<Timestamp> {
        self.last.get(pull).map(|ended| ended.at)
    }

    /// True if the pull has ended so recently that it is not begun again yet.
    pub(super) fn is_waiting(&self, pull: &Pull, now: Timestamp) -> bool {
        self.last.get(pull).is_some_and(|ended| now < ended.again_at())
    }

    /// True if the node has pulled the image so recently that it is taken to have it, although it does not list it.
    pub(super) fn has_pulled(&self, pull: &Pull, now: Timestamp) -> bool {
        self.last.get(pull).is_some_and(|last| last.outcome == Outcome::Pulled && now < last.again_at())
    }

    /// The pulls that have failed and are tried again.
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
                FIRST_WAIT.checked_mul(doubled).unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT)
            }
        };
        self.at.checked_add(wait).unwrap_or(Timestamp::MAX)
    }
}
