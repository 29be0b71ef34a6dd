//! Collects findings during an analysis, combines repeats, and notes when to analyse again.

use jiff::{SignedDuration, Timestamp};

use super::{Finding, Severity};

/// The findings so far.
pub(super) struct Notes {
    now: Timestamp,
    found: Vec<(Option<Timestamp>, Finding)>,
    recheck_at: Option<Timestamp>,
}

impl Notes {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { now, found: Vec::new(), recheck_at: None }
    }

    /// Adds a finding. A finding with the same content about the same object is counted instead.
    pub(super) fn add(&mut self, at: Option<Timestamp>, finding: Finding) {
        let same = |known: &Finding| {
            known.reason == finding.reason
                && known.message == finding.message
                && known.source == finding.source
        };
        match self.found.iter_mut().find(|(_, known)| same(known)) {
            Some((known_at, known)) => {
                *known_at = at.max(*known_at);
                known.count = known.count.saturating_add(finding.count);
                known.severity = known.severity.max(finding.severity);
            }
            None => self.found.push((at, finding)),
        }
    }

    /// Returns true if `wait` has passed since `since`; if not, notes the time at which it will have passed. An unknown
    /// time counts as long ago.
    pub(super) fn has_passed(&mut self, wait: SignedDuration, since: Option<Timestamp>) -> bool {
        let Some(due) = since.and_then(|since| since.checked_add(wait).ok()) else {
            return true;
        };
        if due <= self.now {
            return true;
        }
        self.recheck_at = Some(self.recheck_at.map_or(due, |known| known.min(due)));
        false
    }

    /// Returns true if there is a finding about this container already.
    pub(super) fn has_fault_of(&self, container: &str) -> bool {
        let source = format!("container/{container}");
        self.found.iter().any(|(_, finding)| finding.source == source && finding.severity > Severity::Info)
    }

    /// Returns the finding that ends the spawn, if any: the first critical one.
    pub(super) fn critical(&self) -> Option<&Finding> {
        self.found.iter().map(|(_, finding)| finding).find(|finding| finding.severity == Severity::Critical)
    }

    /// Returns all findings, oldest first, and the time of the next analysis.
    pub(super) fn into_parts(mut self) -> (Vec<Finding>, Option<Timestamp>) {
        // Findings from the pod's status have no time. They apply at present, so they come last.
        self.found.sort_by_key(|(at, _)| at.unwrap_or(Timestamp::MAX));
        (self.found.into_iter().map(|(_, finding)| finding).collect(), self.recheck_at)
    }
}
