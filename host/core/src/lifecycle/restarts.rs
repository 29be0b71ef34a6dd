//! Counts restarts of a running lab's containers.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// The number of restarts of a running lab that are tolerated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Number of restarts within the window that are tolerated. One more ends the lab.
    pub allowed: u32,
    /// The time for which a restart counts.
    pub window: SignedDuration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self { allowed: 3, window: SignedDuration::from_mins(10) }
    }
}

/// The restarts of a running lab's containers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restarts {
    /// The pod's restart count at the last observation; `None` before the first one.
    counted: Option<u32>,
    /// The pod's restart count in the record, until it is observed after a restart of the service.
    recorded: Option<u32>,
    /// Number of restarts since the lab became ready.
    total: u32,
    /// True if the lab has begun again in another pod.
    moved: bool,
    /// Times of the restarts that may still be within the window.
    recent: VecDeque<Timestamp>,
}

impl Restarts {
    /// Creates the state after a restart of the service, with the restarts that were counted before, and the count of the
    /// pod at that time.
    pub fn recorded(total: u32, of_pod: Option<u32>) -> Self {
        Self { total, recorded: of_pod, ..Self::default() }
    }

    /// Returns the number of restarts since the lab became ready.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Returns the pod's restart count at the last observation.
    pub fn of_pod(&self) -> Option<u32> {
        self.counted.or(self.recorded)
    }

    /// Records that the lab has begun again in another pod, whose restarts are counted from now on.
    pub(super) fn begin_anew(&mut self) {
        (self.counted, self.recorded, self.moved) = (None, None, true);
        self.total = self.total.saturating_add(1);
    }

    /// Returns true if the lab has begun again in another pod.
    pub(super) fn has_moved(&self) -> bool {
        self.moved
    }

    /// Takes the pod's current restart count and returns the number of new restarts. It is not known when those happened
    /// that are new since the service was restarted, so they are not among the recent ones.
    pub(super) fn count(&mut self, restarts: u32, now: Timestamp) -> u32 {
        let new = restarts.saturating_sub(self.of_pod().unwrap_or(restarts));
        if self.counted.replace(restarts).is_some() {
            self.recent.extend((0..new.min(100)).map(|_| now));
        }
        self.total = self.total.saturating_add(new);
        new
    }

    /// Returns true if more restarts happened within the window than are tolerated.
    pub(super) fn are_too_many(&mut self, policy: RestartPolicy, now: Timestamp) -> bool {
        while self.recent.front().is_some_and(|at| now.duration_since(*at) > policy.window) {
            self.recent.pop_front();
        }
        self.recent.len() > usize::try_from(policy.allowed).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_count_only_within_the_window() {
        let policy = RestartPolicy { allowed: 2, window: SignedDuration::from_mins(10) };
        let at = |minutes| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
        let mut restarts = Restarts::default();
        assert_eq!(restarts.count(5, at(0)), 0, "those of the start do not count");
        for (count, minute, too_many) in
            [(6, 1, false), (7, 2, false), (7, 3, false), (8, 12, false), (9, 13, false), (10, 14, true)]
        {
            restarts.count(count, at(minute));
            assert_eq!(restarts.are_too_many(policy, at(minute)), too_many, "minute {minute}");
        }
        assert_eq!(restarts.total(), 5);
    }

    #[test]
    fn restarts_during_an_absence_of_the_service_are_noticed_and_end_no_lab() {
        let now = Timestamp::UNIX_EPOCH;
        let mut restarts = Restarts::recorded(2, Some(7));
        assert_eq!(restarts.of_pod(), Some(7));
        assert_eq!(restarts.count(57, now), 50);
        assert_eq!((restarts.total(), restarts.of_pod()), (52, Some(57)));
        assert!(!restarts.are_too_many(RestartPolicy::default(), now));
        let mut of_older_version = Restarts::recorded(2, None);
        assert_eq!(of_older_version.count(9, now), 0);
    }
}
