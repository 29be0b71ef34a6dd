//! The blueprints of a site.

use std::collections::BTreeMap;

use super::BlueprintSpec;
use crate::names::ObjectName;

/// The blueprints of a site, by name. Each of them can be resolved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Library(pub(super) BTreeMap<ObjectName, BlueprintSpec>);

impl Library {
    /// Returns all blueprints.
    pub fn all(&self) -> impl Iterator<Item = (&ObjectName, &BlueprintSpec)> {
        self.0.iter()
    }

    /// Returns true if the site has no blueprints.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if there is a blueprint of this name, even if no user may choose it.
    pub fn has(&self, name: &ObjectName) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the blueprint of this name.
    pub(super) fn entry(&self, name: &ObjectName) -> Option<(&ObjectName, &BlueprintSpec)> {
        self.0.get_key_value(name)
    }

    /// Returns the blueprints that a member of these groups may choose.
    pub fn choices<'a>(
        &'a self,
        groups: &'a [String],
    ) -> impl Iterator<Item = (&'a ObjectName, &'a BlueprintSpec)> {
        self.all().filter(move |(_, spec)| !spec.platform && spec.is_for(groups))
    }
}

impl BlueprintSpec {
    /// Returns true if a member of these groups may use the blueprint.
    pub(super) fn is_for(&self, groups: &[String]) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|group| groups.contains(group))
    }
}
