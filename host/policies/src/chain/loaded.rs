//! What became of the policies of the configuration.

use std::sync::Arc;

use super::link::Link;
use super::loader::Chain;
use crate::contract::hooks::Question;
use crate::errors::{CallError, CallErrorKind, LoadError};
use crate::names::policy_name::PolicyName;
use crate::source::spec::PolicySpec;

/// The policies of the configuration.
pub(crate) enum Loaded {
    /// All of them can be asked.
    Chain(Chain),
    /// One could not be loaded when the service started. Nothing is allowed that the policies would have decided about:
    /// another of them may be the one that denies it.
    Failed {
        /// The policies, for the next attempt.
        specs: Vec<PolicySpec>,
        /// The policy that could not be loaded.
        policy: PolicyName,
        /// The reason.
        problem: String,
    },
}

impl Loaded {
    pub(crate) fn failed(specs: Vec<PolicySpec>, error: &LoadError) -> Self {
        Self::Failed { specs, policy: error.policy.clone(), problem: error.kind.to_string() }
    }

    /// Returns the policies that are loaded: none, if one of them could not be loaded.
    pub(crate) fn chain(&self) -> &[Arc<Link>] {
        match self {
            Self::Chain(chain) => chain,
            Self::Failed { .. } => &[],
        }
    }

    /// Returns the policies that others replace; `None` if there are none yet, as at the start.
    pub(crate) fn to_replace(&self) -> Option<&[Arc<Link>]> {
        match self {
            Self::Chain(chain) => Some(chain),
            Self::Failed { .. } => None,
        }
    }

    /// Returns the policies, to be asked a question.
    pub(crate) fn to_ask<Q: Question>(&self) -> Result<&[Arc<Link>], CallError> {
        match self {
            Self::Chain(chain) => Ok(chain),
            Self::Failed { policy, problem, .. } => Err(CallError {
                policy: policy.clone(),
                hook: Q::HOOK,
                kind: CallErrorKind::NotLoaded(problem.clone()),
            }),
        }
    }

    /// Returns the policies as the configuration has them.
    pub(crate) fn specs(&self) -> Vec<PolicySpec> {
        match self {
            Self::Chain(chain) => chain.iter().map(|link| link.configured().clone()).collect(),
            Self::Failed { specs, .. } => specs.clone(),
        }
    }

    /// Returns the reason for which no policy can be asked, if there is one.
    pub(crate) fn missing(&self) -> Option<String> {
        match self {
            Self::Chain(_) => None,
            Self::Failed { .. } => self.problem(),
        }
    }

    /// Returns the first policy that could not be loaded as it is configured, and the reason.
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::Chain(chain) => chain
                .iter()
                .find_map(|link| link.stand_in.as_ref())
                .map(|stand_in| stand_in.error.to_string()),
            Self::Failed { policy, problem, .. } => Some(format!("policy `{policy}`: {problem}")),
        }
    }
}
