//! The properties of a lab in a user string.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Repository;
use crate::names::{ObjectName, ServerName, extract};
use crate::values::digest::Digest;
use crate::workload::Workload;

/// The largest length of the readable part of a server's name that is made from the settings.
const MAX_READABLE_LENGTH: usize = 40;
/// Number of hexadecimal digits that distinguish such names.
const DIGITS: usize = 8;

/// The properties of a lab, as a user string states them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The blueprint of the lab.
    pub blueprint: Option<ObjectName>,
    /// The repository whose own blueprint the lab uses.
    pub repository: Option<Repository>,
    /// The workload whose pods get the lab.
    pub workload: Option<Workload>,
}

impl Wanted {
    /// Returns true if the text has no settings.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the name of the lab's server for a user string that names none.
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
                let digest = Digest::sha256(self.to_string().as_bytes()).short_hex(DIGITS);
                format!("{}-{digest}", extract(&readable.join("-"), MAX_READABLE_LENGTH))
            }
        };
        // The name consists of letters, digits, hyphens and dots.
        ServerName::parse(name).unwrap_or_default()
    }
}

/// Writes the settings of a user string, in their canonical order.
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
