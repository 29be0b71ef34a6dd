use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use wasmspawner_core::config::OnFailure;

use super::answer_json::answer_json;
use super::candidate::Candidate;
use super::last_good::LastGood;
use super::stand_in::StandIn;
use crate::contract::hooks::Question;
use crate::engine::Engine;
use crate::errors::{CallBlame, CallError};
use crate::policy::Policy;
use crate::reports::loaded_policy::LoadedPolicy;
use crate::reports::version_record::Predecessor;
use crate::source::spec::PolicySpec;

/// A policy of the chain, with its candidate and its last good version.
pub(crate) struct Link {
    pub(crate) policy: Policy,
    pub(crate) candidate: Option<Arc<Candidate>>,
    /// The version that answers if the policy fails; `None` if the operator does not want one, or there is none.
    pub(crate) last_good: Option<LastGood>,
    /// Set if this policy is an earlier version, which answers because the configured one could not be loaded.
    pub(crate) stand_in: Option<StandIn>,
}

impl Deref for Link {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.policy
    }
}

impl Link {
    /// Returns the policy as the configuration has it.
    pub(crate) fn configured(&self) -> &PolicySpec {
        self.stand_in.as_ref().map_or(&self.policy.spec, |stand_in| &stand_in.configured)
    }

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

    /// Asks the policy, and its candidate the same.
    pub(crate) async fn answer<Q: Question>(
        &self,
        engine: &Arc<Engine>,
        question: &Q,
    ) -> Option<Result<Q::Answer, CallError>> {
        let answer = self.ask(engine, |policy| policy.ask(engine, question)).await;
        self.compare(engine, answer.as_ref().map(Result::as_ref), question);
        answer
    }

    /// Compares an answer of the policy with the answer of its candidate, if there is one, to the same question. Errors
    /// of an overload leave nothing to compare.
    pub(crate) fn compare<Q: Question, A: Serialize>(
        &self,
        engine: &Arc<Engine>,
        answer: Option<Result<&A, &CallError>>,
        question: &Q,
    ) {
        let Some(candidate) = &self.candidate else { return };
        let live = match answer {
            Some(Err(error)) if error.kind.is_overload() => return,
            Some(answer) => answer_json(answer.map(|answer| json!(answer))),
            None => Value::Null,
        };
        Arc::clone(candidate).compare(Arc::clone(engine), live, question.clone());
    }
}
