use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::policy::Grant;
use crate::values::digest::Digest;

/// The source of a field's value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The request, as the Hub sent it.
    Request,
    /// The service itself.
    Service,
    /// The identity provider, which decides the limits of a user.
    IdentityProvider,
    /// A policy, with its name.
    Policy(String),
    /// The blueprints of the lab, with the name of the one that was chosen.
    Blueprint(String),
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
            Self::IdentityProvider => f.write_str("identity provider"),
            Self::Policy(name) => write!(f, "policy `{name}`"),
            Self::Blueprint(name) => write!(f, "blueprint `{name}`"),
            Self::Configuration => f.write_str("configuration"),
            Self::Baseline => f.write_str("security baseline"),
        }
    }
}

/// A field for which two sources had different values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The field, such as `env.SIZE`.
    pub field: String,
    /// The source whose value was replaced.
    pub earlier: Source,
    /// The source whose value is used.
    pub later: Source,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} replaces the value of {}", self.field, self.later, self.earlier)
    }
}

/// A grant that an answer needed and that the policy has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantUse {
    /// The policy's name.
    pub policy: String,
    /// The path of the field in the policy's answer.
    pub field: String,
    /// The grant.
    pub grant: Grant,
}

/// The record of who decided each setting of a lab. `render --explain`, the history and the log show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The source of each field, by its path: `image`, `env.SIZE`, `volumes.home`, `resources.cpu_limit_millis`.
    pub sources: BTreeMap<String, Source>,
    /// Fields for which two policies, or a policy and the configuration, had different values.
    pub conflicts: Vec<Conflict>,
    /// The grants that were used.
    pub grants: Vec<GrantUse>,
    /// Values that were changed to fit the operator's limits.
    pub notes: Vec<String>,
    /// The component of each policy that answered `build-pod` or `lab-server`, by the policy's name. If the last good
    /// version answered, its component differs from the one in use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, Digest>,
}

/// The fields of a lab, by the source that decided them, as [`Source`] is displayed. A field that a policy could set
/// only with a grant also appears, with its path in the policy's own answer, under the policy and its grant.
pub type FieldsBySource = BTreeMap<String, Vec<String>>;

impl Provenance {
    /// Groups the fields by the source that decided them.
    pub fn by_source(&self) -> FieldsBySource {
        let mut fields = FieldsBySource::new();
        for (field, source) in &self.sources {
            fields.entry(source.to_string()).or_default().push(field.clone());
        }
        for GrantUse { policy, field, grant } in &self.grants {
            let by = format!("{}, by its grant {grant}", Source::Policy(policy.clone()));
            fields.entry(by).or_default().push(field.clone());
        }
        fields
    }

    /// Records that `source` set `field` first.
    pub(super) fn set(&mut self, field: impl Into<String>, source: &Source) {
        self.sources.insert(field.into(), source.clone());
    }

    /// Records that `source` replaced the value of `field`. A conflict is noted only between policies and
    /// configuration; replacing a value of the request or of the service is the purpose of the layers.
    pub(super) fn replaced(&mut self, field: impl Into<String>, source: &Source) {
        let field = field.into();
        if let Some(earlier) = self.sources.insert(field.clone(), source.clone())
            && matches!(earlier, Source::Policy(_))
            && earlier != *source
        {
            self.conflicts.push(Conflict { field, earlier, later: source.clone() });
        }
    }

    /// Puts `value` into `slot`, and records the source.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needed_a_grant_is_told_with_the_grant() {
        let site = Source::Policy("site".to_owned());
        let mut provenance = Provenance::default();
        provenance.set("volumes.scratch", &site);
        let (policy, field) = ("site".to_owned(), "volumes[0].source.host_path".to_owned());
        provenance.grants.push(GrantUse { policy, field, grant: Grant::HostPath });
        let told = provenance.by_source();
        assert_eq!(told["policy `site`"], ["volumes.scratch"]);
        assert_eq!(told["policy `site`, by its grant host-path"], ["volumes[0].source.host_path"]);
    }
}
