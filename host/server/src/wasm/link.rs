use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde_json::{Value, json};
use wasmspawner_core::config::OnFailure;

use super::candidate::Candidate;
use super::engine::Engine;
use super::errors::{CallBlame, CallError};
use super::kept_versions;
use super::loaded_policy::{LastGoodReport, LoadedPolicy};
use super::policy::Policy;
use super::question::Question;
use super::told::told;

/// A policy of the chain, with its candidate and the version that was in use before.
pub(super) struct Link {
    pub(super) policy: Policy,
    pub(super) candidate: Option<Arc<Candidate>>,
    /// The version that answers where the policy fails, if the operator wants that and there is one.
    pub(super) last_good: Option<LastGood>,
}

/// An earlier version of a policy, which answers where the policy fails.
pub(super) struct LastGood {
    policy: Policy,
    answers: AtomicU64,
}

impl Deref for Link {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.policy
    }
}

impl Link {
    pub(super) fn loaded(&self) -> LoadedPolicy {
        let candidate = self.candidate.as_ref().map(|candidate| candidate.report());
        let last_good = self.last_good.as_ref().map(LastGood::report);
        LoadedPolicy { last_good, candidate, ..self.policy.loaded() }
    }

    /// The link, whose versions are kept for a restart of the service.
    pub(super) fn kept(mut self, component: &[u8], engine: &Engine) -> Self {
        let last_good = self.last_good.as_ref().map(LastGood::policy);
        kept_versions::keep(&mut self.policy, component, last_good, engine);
        self
    }

    /// Asks the policy. If it fails by its own fault, the last good version is asked, if there is one. An error of both is that
    /// of the policy.
    pub(super) async fn ask<'a, T, F>(
        &'a self,
        call: impl Fn(&'a Policy) -> F,
    ) -> Option<Result<T, CallError>>
    where
        F: Future<Output = Option<Result<T, CallError>>>,
    {
        let answer = call(&self.policy).await;
        let (Some(Err(error)), Some(last_good)) = (&answer, &self.last_good) else { return answer };
        if error.kind.blame() != CallBlame::Policy {
            return answer;
        }
        match call(&last_good.policy).await {
            Some(Err(other)) if other.kind.blame() == CallBlame::Policy => answer,
            instead => {
                tracing::warn!(policy = %self.name(), %error, digest = %last_good.policy.digest, "the policy failed, and its last good version answers");
                last_good.answers.fetch_add(1, Ordering::Relaxed);
                instead
            }
        }
    }

    /// The version of this policy that answers where `next`, which takes its place, fails.
    pub(super) fn last_good_for(&self, next: &Policy, engine: &Engine) -> Option<LastGood> {
        if next.spec.on_failure != OnFailure::LastGood {
            return None;
        }
        let earlier = self.last_good.as_ref().map(|last_good| &last_good.policy);
        let good = if next.is_like(&self.policy) {
            earlier
        } else if self.policy.has_failed() {
            earlier.or(Some(&self.policy))
        } else {
            Some(&self.policy)
        }?;
        if !next.trust.includes(good.trust.key().as_ref()) {
            return None;
        }
        match good.under(&next.spec, engine) {
            Ok(policy) => Some(LastGood::new(policy)),
            Err(error) => {
                tracing::warn!(policy = %next.name(), %error, "the last good version of the policy cannot be kept");
                None
            }
        }
    }

    /// Compares an answer of the policy with what the candidate, if there is one, answers to the same.
    pub(super) fn compare<T: Serialize>(
        &self,
        engine: &Arc<Engine>,
        answer: Option<&Result<T, CallError>>,
        question: impl FnOnce() -> Question,
    ) {
        let Some(candidate) = &self.candidate else { return };
        let live = answer.map_or(Value::Null, |answer| told(answer.as_ref().map(|answer| json!(answer))));
        Arc::clone(candidate).compare(Arc::clone(engine), live, question());
    }
}

impl LastGood {
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, answers: AtomicU64::default() }
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    fn report(&self) -> LastGoodReport {
        let LoadedPolicy { version, digest, .. } = self.policy.loaded();
        let answers = self.answers.load(Ordering::Relaxed);
        LastGoodReport { version, digest: digest.to_string(), answers }
    }
}
