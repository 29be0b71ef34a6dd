use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::candidate::Candidate;
use super::engine::Engine;
use super::errors::CallError;
use super::policy::{LoadedPolicy, Policy};
use super::question::Question;
use super::told::told;

/// A policy of the chain, with its candidate.
pub(super) struct Link {
    pub(super) policy: Policy,
    pub(super) candidate: Option<Arc<Candidate>>,
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
        LoadedPolicy { candidate, ..self.policy.loaded() }
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
