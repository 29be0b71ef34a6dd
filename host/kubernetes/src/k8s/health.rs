//! Tracks whether the Kubernetes API answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The time for which all requests must fail before the API counts as away. A restart of the API server or one lost
/// request takes less time.
const AWAY_AFTER: Duration = Duration::from_secs(3);

/// The availability of the Kubernetes API, judged by the results of the service's own requests. Clones share the state.
#[derive(Clone)]
pub struct Health {
    failing_since: Arc<Mutex<Option<Instant>>>,
    away: watch::Sender<bool>,
}

impl Default for Health {
    fn default() -> Self {
        Self { failing_since: Arc::default(), away: watch::Sender::new(false) }
    }
}

impl Health {
    /// True while the API counts as away.
    pub fn is_away(&self) -> bool {
        *self.away.borrow()
    }

    /// A receiver of every change.
    pub fn follow(&self) -> watch::Receiver<bool> {
        self.away.subscribe()
    }

    /// Records the result of a request. `answered` is false if the request failed as requests do while the API is away.
    pub(super) fn note(&self, answered: bool) {
        let mut failing_since = self.failing_since.lock().unwrap_or_else(PoisonError::into_inner);
        let away = if answered {
            *failing_since = None;
            false
        } else {
            failing_since.get_or_insert_with(Instant::now).elapsed() >= AWAY_AFTER
        };
        self.away.send_if_modified(|known| std::mem::replace(known, away) != away);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_needs_failures_over_time_and_ends_with_one_answer() {
        let health = Health::default();
        health.note(false);
        assert!(!health.is_away());
        tokio::time::advance(AWAY_AFTER).await;
        assert!(!health.is_away(), "nobody has asked since");
        health.note(false);
        assert!(health.is_away());
        health.note(true);
        assert!(!health.is_away());
        health.note(false);
        assert!(!health.is_away(), "it counts anew");
    }
}
