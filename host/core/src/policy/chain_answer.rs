use std::fmt;

use super::compose::Source;
use super::{Customization, Grants, LabServer};
use crate::digest::Digest;

/// One answer of the chain, in which a later one counts over an earlier one: what a policy says to `build-pod` and
/// `lab-server`, or what the blueprints of the lab say, which come before all policies.
#[derive(Clone, Debug)]
pub struct ChainAnswer {
    /// Whose answer it is.
    pub author: Author,
    /// The component of the policy that has answered; none for blueprints.
    pub component: Option<Digest>,
    /// What the operator has granted the policy; nothing for blueprints.
    pub grants: Grants,
    /// The answer to `build-pod`.
    pub customization: Customization,
    /// The answer to `lab-server`.
    pub server: LabServer,
}

/// Whose answer it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Author {
    /// A policy, with its name.
    Policy(String),
    /// The blueprints of the lab, with the name of the one that was chosen.
    Blueprint(String),
}

impl Author {
    /// The name of the policy or of the blueprint.
    pub fn name(&self) -> &str {
        match self {
            Self::Policy(name) | Self::Blueprint(name) => name,
        }
    }

    /// The source of what it decides.
    pub(super) fn source(&self) -> Source {
        match self {
            Self::Policy(name) => Source::Policy(name.clone()),
            Self::Blueprint(name) => Source::Blueprint(name.clone()),
        }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(name) => write!(f, "policy `{name}`"),
            Self::Blueprint(name) => write!(f, "blueprint `{name}`"),
        }
    }
}
