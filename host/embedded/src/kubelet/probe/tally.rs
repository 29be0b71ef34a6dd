//! Thresholds.

use super::Schedule;

/// What a probe says after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Healthy,
    Unhealthy,
    /// Not enough answers of one kind in a row yet.
    Undecided,
}

/// Counts answers of one kind in a row.
#[derive(Debug)]
pub(crate) struct Tally {
    success_threshold: u32,
    failure_threshold: u32,
    good: u32,
    bad: u32,
}

impl Tally {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        Self {
            success_threshold: schedule.success_threshold,
            failure_threshold: schedule.failure_threshold,
            good: 0,
            bad: 0,
        }
    }

    pub(crate) fn add(&mut self, healthy: bool) -> Verdict {
        if healthy {
            self.good += 1;
            self.bad = 0;
        } else {
            self.bad += 1;
            self.good = 0;
        }
        if self.good >= self.success_threshold {
            Verdict::Healthy
        } else if self.bad >= self.failure_threshold {
            Verdict::Unhealthy
        } else {
            Verdict::Undecided
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::Action, *};

    #[test]
    fn needs_answers_in_a_row() {
        use Verdict::{Healthy, Undecided, Unhealthy};
        let mut tally = Tally::new(&Schedule {
            action: Action::Unknown,
            initial_delay: Duration::ZERO,
            period: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            success_threshold: 2,
            failure_threshold: 3,
        });
        let answers = [true, false, false, true, true, true, false, false, false, false, true];
        let verdicts = answers.map(|healthy| tally.add(healthy));
        let expect = [
            Undecided, Undecided, Undecided, Undecided, Healthy, Healthy, Undecided, Undecided, Unhealthy,
            Unhealthy, Undecided,
        ];
        assert_eq!(verdicts, expect);
    }
}
