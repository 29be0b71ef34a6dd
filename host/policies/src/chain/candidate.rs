//! A candidate for a policy: it receives the same calls as the policy. Its answers are compared and otherwise ignored.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wasmspawner_core::values::difference::places;

use super::answer_json::answer_json;
use crate::contract::hooks::Question;
use crate::engine::Engine;
use crate::errors::LoadErrorKind;
use crate::names::hook::Hook;
use crate::names::policy_name::PolicyName;
use crate::policy::Policy;
use crate::reports::candidate_report::{CandidateReport, DifferentAnswer};

/// The number of answers that are compared at the same time. It is small so that candidates take little from live
/// calls.
const AT_ONCE: usize = 2;
/// The number of answers that may wait or be compared; further ones are skipped. It is enough for the calls of some
/// spawns, which follow each other quickly: otherwise a slow candidate would only ever receive the first ones.
const WAITING: usize = 32;

/// The candidate for a policy of the chain.
pub(crate) struct Candidate {
    /// The name of the policy that it may replace.
    of: PolicyName,
    /// `None` if the candidate could not be loaded.
    policy: Option<Policy>,
    comparisons: Semaphore,
    waiting: Arc<Semaphore>,
    report: Mutex<CandidateReport>,
}

impl Candidate {
    /// Creates a candidate. A candidate that cannot be loaded does not affect the policy in use.
    pub(crate) fn new(of: PolicyName, loaded: Result<Policy, LoadErrorKind>) -> Self {
        let (policy, report) = match loaded {
            Ok(policy) => {
                let digest = Some(policy.digest.to_string());
                (Some(policy), CandidateReport { digest, ..CandidateReport::default() })
            }
            Err(error) => {
                tracing::warn!(policy = %of, %error, "the candidate for a policy cannot be loaded; nothing is compared");
                (None, CandidateReport { error: Some(error.to_string()), ..CandidateReport::default() })
            }
        };
        let (comparisons, waiting) = (Semaphore::new(AT_ONCE), Arc::new(Semaphore::new(WAITING)));
        Self { of, policy, comparisons, waiting, report: Mutex::new(report) }
    }

    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    pub(crate) fn report(&self) -> CandidateReport {
        self.lock().clone()
    }

    /// Asks the candidate the same in the background, and compares the answers.
    pub(crate) fn compare<Q: Question>(self: Arc<Self>, engine: Arc<Engine>, live: Value, question: Q) {
        let (Some(_), Some(input)) = (&self.policy, question.input()) else { return };
        let Ok(place) = Arc::clone(&self.waiting).try_acquire_owned() else {
            return self.skip(&engine, Q::HOOK);
        };
        tokio::spawn(async move {
            // The semaphore is never closed.
            if let Ok(_turn) = self.comparisons.acquire().await {
                self.ask(&engine, &live, &question, input).await;
            }
            drop(place);
        });
    }

    async fn ask<Q: Question>(&self, engine: &Engine, live: &Value, question: &Q, input: Value) {
        let Some(policy) = &self.policy else { return };
        let (hook, answer) = (Q::HOOK, policy.ask(engine, question).await);
        if matches!(&answer, Some(Err(error)) if error.kind.is_overload()) {
            return self.skip(engine, hook);
        }
        let candidate = answer.map_or(Value::Null, |answer| match answer {
            Ok(answer) => answer_json(Ok(json!(answer))),
            Err(error) => answer_json(Err(&error)),
        });
        let places = places(live, &candidate);
        if places.is_empty() {
            self.lock().same += 1;
            return (engine.options.on_compared)(&self.of, hook, "same");
        }
        tracing::info!(policy = %self.of, %hook, ?places, "the candidate for a policy answers differently");
        let different = DifferentAnswer { at: jiff::Timestamp::now(), hook, places, input };
        self.lock().note(different);
        (engine.options.on_compared)(&self.of, hook, "different");
    }

    fn skip(&self, engine: &Engine, hook: Hook) {
        self.lock().skipped += 1;
        (engine.options.on_compared)(&self.of, hook, "skipped");
    }

    fn lock(&self) -> MutexGuard<'_, CandidateReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
