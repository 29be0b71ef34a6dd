//! The rules for restarts of ended containers.
//!
//! Source: the Kubernetes documentation, "Container restarts": the first restart is immediate, later ones wait 10 s,
//! 20 s, 40 s ... up to 5 minutes; a container that ran long enough starts over.

use std::time::Duration;

/// `restartPolicy` of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

impl RestartPolicy {
    /// Parses the policy of a spec field; an absent or unknown one means the API's default.
    pub(crate) fn parse(text: Option<&str>) -> Self {
        match text {
            Some("OnFailure") => Self::OnFailure,
            Some("Never") => Self::Never,
            _ => Self::Always,
        }
    }

    /// Returns the policy for a plain init container. It runs until success, so `Always` means `OnFailure`.
    pub(crate) fn for_init(self) -> Self {
        if self == Self::Never { Self::Never } else { Self::OnFailure }
    }

    pub(crate) fn restarts(self, exit_code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit_code != 0,
            Self::Never => false,
        }
    }
}

/// The waits between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffOptions {
    /// The first wait. It doubles with every attempt. Kubernetes: 10 s.
    pub base: Duration,
    /// The longest wait. Kubernetes: 5 min.
    pub max: Duration,
}

impl Default for BackoffOptions {
    fn default() -> Self {
        Self { base: Duration::from_secs(10), max: Duration::from_mins(5) }
    }
}

/// The waits of one container (or of one image pull).
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    options: BackoffOptions,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(options: BackoffOptions) -> Self {
        Self { options, next: options.base }
    }

    /// Creates the waits of a container that has already had this number of restarts. The first restart is immediate.
    pub(crate) fn after_restarts(options: BackoffOptions, restarts: i32) -> Self {
        let mut backoff = Self { options, next: Duration::ZERO };
        for _ in 0..restarts.min(32) {
            backoff.advance();
        }
        backoff
    }

    /// Returns the wait before the next attempt, and makes the one after it longer.
    pub(crate) fn advance(&mut self) -> Duration {
        let wait = self.next.min(self.options.max);
        self.next = if self.next.is_zero() { self.options.base } else { (wait * 2).min(self.options.max) };
        wait
    }

    /// Resets the waits after a run of more than twice the longest wait. Such a container is healthy, so its next
    /// restart is immediate again.
    pub(crate) fn ran_for(&mut self, duration: Duration) {
        if duration > self.options.max * 2 {
            self.next = Duration::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_maximum_and_start_over_after_a_long_run() {
        let seconds = |backoff: &mut Backoff, count: usize| -> Vec<u64> {
            (0..count).map(|_| backoff.advance().as_secs()).collect()
        };
        let options = BackoffOptions::default();
        assert_eq!(seconds(&mut Backoff::new(options), 3), [10, 20, 40]);
        let mut restarts = Backoff::after_restarts(options, 0);
        assert_eq!(seconds(&mut restarts, 8), [0, 10, 20, 40, 80, 160, 300, 300]);
        restarts.ran_for(Duration::from_mins(10));
        assert_eq!(seconds(&mut restarts, 1), [300]);
        restarts.ran_for(Duration::from_secs(601));
        assert_eq!(seconds(&mut restarts, 2), [0, 10]);
    }
}
