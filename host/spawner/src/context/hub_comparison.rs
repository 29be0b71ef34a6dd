//! Compares the labs that run with the servers that JupyterHub knows.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;
use tokio::time::Instant;
use wasmspawner_core::lifecycle::forgotten::{Check, ForgottenRules, KnownLab, Tracker};

use wasmspawner_hub::{HubApi, HubError};
use wasmspawner_telemetry::{HubCheck, Metrics};

/// The time for which the last check is reused, so that a thousand requests at once ask the Hub only once.
const FRESH: Duration = Duration::from_secs(2);

/// A comparison of the labs with the servers that the Hub knows.
pub struct HubComparison {
    hub: Arc<HubApi>,
    rules: ForgottenRules,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tracker: Tracker,
    last: Option<(Instant, Result<Arc<Check>, HubError>)>,
}

impl HubComparison {
    /// Creates a comparison that begins now. The time for which labs have been forgotten does not survive a restart.
    pub fn new(hub: Arc<HubApi>, rules: ForgottenRules) -> Self {
        Self { hub, rules, state: Mutex::default() }
    }

    /// The interval at which the labs are compared.
    pub(crate) fn every(&self) -> Duration {
        self.rules.check_every.unsigned_abs()
    }

    /// The time for which a lab must be found forgotten before it is stopped; `None` if labs are not stopped for that.
    pub(crate) fn stop_after(&self) -> Option<SignedDuration> {
        self.rules.stop_after
    }

    /// Compares the running labs, or returns the result of the last comparison if that is recent.
    pub(crate) async fn check(
        &self,
        running: impl FnOnce() -> Vec<KnownLab>,
        metrics: &Metrics,
        now: Timestamp,
    ) -> Result<Arc<Check>, HubError> {
        let mut state = self.state.lock().await;
        let fresh = FRESH.min(self.every());
        if let Some((_, last)) = state.last.as_ref().filter(|(at, _)| at.elapsed() < fresh) {
            return last.clone();
        }
        // The labs are listed before the Hub is asked: a lab that starts in between would be missing in the answer.
        let known = running();
        let answer = match self.hub.servers().await {
            Ok(servers) => {
                let check = state.tracker.compare(&known, &servers, &self.rules, now);
                metrics.set_forgotten(check.forgotten.len());
                metrics.hub_checked(if check.withheld.is_some() {
                    HubCheck::ImplausibleResult
                } else {
                    HubCheck::Compared
                });
                Ok(Arc::new(check))
            }
            Err(error) => {
                state.tracker.no_answer();
                metrics.hub_checked(if error.may_pass() { HubCheck::NoAnswer } else { HubCheck::Refused });
                Err(error)
            }
        };
        state.last = Some((Instant::now(), answer.clone()));
        answer
    }
}
