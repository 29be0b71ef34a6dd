//! The blueprints of a site.

use std::collections::BTreeMap;

use super::BlueprintSpec;
use crate::names::ObjectName;

/// The blueprints of a site, by name. Each of them can be resolved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Library(pub(super) BTreeMap<ObjectName, BlueprintSpec>);

impl Library {
    /// All blueprints.
    pub fn all(&self) -> impl Iterator<Item = (&ObjectName, &BlueprintSpec)> {
        self.0.iter()
    }

    /// True if the site has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if there is one of this name, whether somebody may choose it or not.
    pub fn has(&self, name: &ObjectName) -> bool {
        self.0.contains_key(name)
    }

    /// The blueprint of this name.
    pub(super) fn entry(&self, name: &ObjectName) -> Option<(&ObjectName, &BlueprintSpec)> {
        self.0.get_key_value(name)
    }

    /// Those that a member of these groups may choose.
    pub fn choices<'a>(
        &'a self,
        groups: &'a [String],
    ) -> impl Iterator<Item = (&'a ObjectName, &'a BlueprintSpec)> {
        self.all().filter(move |(_, spec)| !spec.platform && spec.is_for(groups))
    }
}

impl BlueprintSpec {
    /// True if a member of these groups may have it.
    pub(super) fn is_for(&self, groups: &[String]) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|group| groups.contains(group))
    }
}
