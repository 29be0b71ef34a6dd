use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use wasmspawner_core::config::OnFailure;

use super::answer_json::answer_json;
use super::candidate::Candidate;
use super::last_good::LastGood;
use crate::engine::Engine;
use crate::errors::{CallBlame, CallError};
use crate::policy::Policy;
use crate::policy::question::Question;
use crate::reports::loaded_policy::LoadedPolicy;
use crate::reports::version_record::Predecessor;

/// A policy of the chain, with its candidate and its last good version.
pub(crate) struct Link {
    pub(crate) policy: Policy,
    pub(crate) candidate: Option<Arc<Candidate>>,
    /// The version that answers if the policy fails; `None` if the operator does not want one, or there is none.
    pub(crate) last_good: Option<LastGood>,
}

impl Deref for Link {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.policy
    }
}

impl Link {
    pub(crate) fn loaded(&self) -> LoadedPolicy {
        let candidate = self.candidate.as_ref().map(|candidate| candidate.report());
        let last_good = self.last_good.as_ref().map(LastGood::report);
        LoadedPolicy { last_good, candidate, ..self.policy.loaded() }
    }

    /// Calls the policy. If the policy fails through its own fault, calls the last good version, if there is one. If
    /// both fail, returns the error of the policy. Also returns that error if the last good version lacks the hook: a
    /// version that never decided about something must not allow it.
    pub(crate) async fn ask<'a, T, F>(
        &'a self,
        engine: &Engine,
        call: impl Fn(&'a Policy) -> F,
    ) -> Option<Result<T, CallError>>
    where
        F: Future<Output = Option<Result<T, CallError>>>,
    {
        let answer = call(&self.policy).await;
        let Some(Err(error)) = &answer else { return answer };
        if error.kind.blame() != CallBlame::Policy {
            return answer;
        }
        self.policy.note_failure(engine);
        let Some(last_good) = &self.last_good else { return answer };
        match call(&last_good.policy).await {
            None => answer,
            Some(Err(other)) if other.kind.blame() == CallBlame::Policy => answer,
            instead => {
                tracing::warn!(policy = %self.name(), %error, digest = %last_good.policy.digest, "the policy failed, and its last good version answers");
                last_good.answered();
                instead
            }
        }
    }

    /// Returns the version of this policy that answers if `next`, its replacement, fails.
    pub(crate) fn last_good_for(&self, next: &Policy, engine: &Engine) -> Option<LastGood> {
        if next.spec.on_failure != OnFailure::LastGood {
            return None;
        }
        let present = Predecessor {
            in_use: &self.policy,
            failed: self.policy.has_failed(),
            last_good: self.last_good.as_ref().map(|last_good| &last_good.policy),
        };
        LastGood::before(next, present.last_good_for(|policy| next.is_like(policy))?, engine)
    }

    /// Compares an answer of the policy with the answer of its candidate, if there is one, to the same call.
    pub(crate) fn compare<T: Serialize>(
        &self,
        engine: &Arc<Engine>,
        answer: Option<&Result<T, CallError>>,
        question: impl FnOnce() -> Question,
    ) {
        match answer {
            Some(Ok(answer)) => self.compare_json(engine, || answer_json(Ok(json!(answer))), question),
            Some(Err(error)) => self.compare_error(engine, error, question),
            None => self.compare_json(engine, || Value::Null, question),
        }
    }

    /// Does the same for an error. Skips errors of an overload, which leave nothing to compare.
    pub(crate) fn compare_error(
        &self,
        engine: &Arc<Engine>,
        error: &CallError,
        question: impl FnOnce() -> Question,
    ) {
        if !error.kind.is_overload() {
            self.compare_json(engine, || answer_json(Err(error)), question);
        }
    }

    /// Does the same for an answer in the JSON form of [`told`].
    pub(crate) fn compare_json(
        &self,
        engine: &Arc<Engine>,
        live: impl FnOnce() -> Value,
        question: impl FnOnce() -> Question,
    ) {
        let Some(candidate) = &self.candidate else { return };
        Arc::clone(candidate).compare(Arc::clone(engine), live(), question());
    }
}
