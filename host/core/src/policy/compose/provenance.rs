use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::policy::Grant;

/// Who set a field of a lab.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The request, as the Hub sent it.
    Request,
    /// The service itself.
    Service,
    /// A policy, by name.
    Policy(String),
    /// The service's configuration.
    Configuration,
    /// The security baseline.
    Baseline,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request => f.write_str("request"),
            Self::Service => f.write_str("service"),
            Self::Policy(name) => write!(f, "policy `{name}`"),
            Self::Configuration => f.write_str("configuration"),
            Self::Baseline => f.write_str("security baseline"),
        }
    }
}

/// A field that two sources wanted differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The field, such as `env.SIZE`.
    pub field: String,
    /// Who lost.
    pub earlier: Source,
    /// Who won.
    pub later: Source,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} replaces what {} said", self.field, self.later, self.earlier)
    }
}

/// A grant that a policy needed and had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantUse {
    /// The policy.
    pub policy: String,
    /// Where in its answer.
    pub field: String,
    /// Which grant.
    pub grant: Grant,
}

/// Who decided what about a lab: for `render --explain`, the history and the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The source of each field, by its path: `image`, `env.SIZE`, `volumes.home`, `resources.cpu_limit_millis`.
    pub sources: BTreeMap<String, Source>,
    /// Where two policies disagreed, or a policy and the configuration.
    pub conflicts: Vec<Conflict>,
    /// The grants that were needed.
    pub grants: Vec<GrantUse>,
    /// What was changed to fit the operator's limits.
    pub notes: Vec<String>,
}

impl Provenance {
    /// `source` set `field`, which nobody had.
    pub(super) fn set(&mut self, field: impl Into<String>, source: &Source) {
        self.sources.insert(field.into(), source.clone());
    }

    /// `source` set `field`, which another had. Replacing the request or the service is what layers are for; two
    /// deciders that disagree are worth a word.
    pub(super) fn replaced(&mut self, field: impl Into<String>, source: &Source) {
        let field = field.into();
        if let Some(earlier) = self.sources.insert(field.clone(), source.clone())
            && matches!(earlier, Source::Policy(_))
            && earlier != *source
        {
            self.conflicts.push(Conflict { field, earlier, later: source.clone() });
        }
    }

    /// Puts `value` in `slot`.
    pub(super) fn put<T: PartialEq>(&mut self, field: &str, source: &Source, slot: &mut Option<T>, value: T) {
        match slot {
            Some(old) if *old == value => {}
            Some(old) => {
                *old = value;
                self.replaced(field, source);
            }
            None => {
                *slot = Some(value);
                self.set(field, source);
            }
        }
    }
}
