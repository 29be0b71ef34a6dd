//! What a lab is to be.

use std::fmt;

use super::Repository;
use crate::digest::Digest;
use crate::names::{ObjectName, ServerName, extract};
use crate::workload::Workload;

/// The longest readable part of a server's name that is made from what is wanted.
const LONGEST_READABLE: usize = 40;
/// How many hexadecimal digits tell such names apart.
const DIGITS: usize = 8;

/// What a lab is to be, as a user string says it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// A blueprint.
    pub blueprint: Option<ObjectName>,
    /// A repository, whose own blueprint counts.
    pub repository: Option<Repository>,
    /// The workload whose pods get the lab.
    pub workload: Option<Workload>,
}

impl Wanted {
    /// True if the text says nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The name of the server that has such a lab, where nobody names one.
    pub fn server(&self) -> ServerName {
        let Self { blueprint, repository, workload } = self;
        let name = match (blueprint, repository, workload) {
            (None, None, None) => return ServerName::default(),
            (Some(blueprint), None, None) => blueprint.to_string(),
            _ => {
                let texts = [
                    blueprint.as_ref().map(ToString::to_string),
                    repository.as_ref().map(ToString::to_string),
                    workload.as_ref().map(ToString::to_string),
                ];
                let readable: Vec<_> = texts.into_iter().flatten().collect();
                let digest = Digest::of(self.to_string().as_bytes()).short_hex(DIGITS);
                format!("{}-{digest}", extract(&readable.join("-"), LONGEST_READABLE))
            }
        };
        // It consists of letters, digits, hyphens and dots.
        ServerName::parse(name).unwrap_or_default()
    }
}

/// The settings of a user string, in their canonical order.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blueprint, repository, workload } = self;
        if let Some(blueprint) = blueprint {
            write!(f, "~blueprint={blueprint}")?;
        }
        if let Some(repository) = repository {
            write!(f, "~repo={repository}")?;
        }
        if let Some(workload) = workload {
            write!(f, "~workload={workload}")?;
        }
        Ok(())
    }
}
