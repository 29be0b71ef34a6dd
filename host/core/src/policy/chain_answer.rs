use std::fmt;

use super::compose::Source;
use super::{Customization, Grants, LabServer, TextFile};
use crate::values::digest::Digest;

/// One answer of the chain: a policy's answer to `build-pod`, `lab-server` and `lab-files`, or the settings of the lab's
/// blueprints, which come before all policies. Later answers override earlier ones.
#[derive(Clone, Debug)]
pub struct ChainAnswer {
    /// The author of the answer.
    pub author: Author,
    /// The component of the policy that answered; none for blueprints.
    pub component: Option<Digest>,
    /// The grants that the operator gave the policy; empty for blueprints.
    pub grants: Grants,
    /// The answer to `build-pod`.
    pub customization: Customization,
    /// The answer to `lab-server`.
    pub server: LabServer,
    /// The answer to `lab-files`.
    pub files: Vec<TextFile>,
}

impl ChainAnswer {
    /// Returns true if the answer decides about anything of the lab. Blueprints choose the options, too, which policies read.
    pub(super) fn decides_something(&self) -> bool {
        matches!(self.author, Author::Blueprint(_))
            || self.customization != Customization::default()
            || self.server != LabServer::default()
            || !self.files.is_empty()
    }
}

/// The author of an answer.
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

    /// The source of the fields that this author decides.
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
