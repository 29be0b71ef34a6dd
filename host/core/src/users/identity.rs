//! The user for whom a request is made, as the identity provider describes them.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Username;
use crate::users::quota::{SpawningForbidden, UserQuota};

/// A user with their POSIX UID and GIDs (SQR-066, "UID and GIDs").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    /// The username as JupyterHub has it.
    pub username: Username,
    /// The UID that the lab's processes run as.
    pub uid: u32,
    /// The primary group of the lab's processes.
    pub gid: u32,
    /// Every group of the user; the primary one may be among them.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// The mail address. Only policies use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The name shown in the form's greeting. Policies get it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What the identity provider allows the user, if it says that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<UserQuota>,
}

/// A group of a user. A group without a GID exists by name only: no process runs in it and no file belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// The group's name.
    pub name: String,
    /// The group's GID. SQR-066 calls it `id`.
    #[serde(default, rename = "id", alias = "gid", skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
}

/// Largest number of groups of a user. Active Directory has 1,015 in a login.
pub const MAX_GROUPS: usize = 2_000;
/// Largest length of a group's name in bytes, which is that of JupyterHub's database.
pub const MAX_GROUP_BYTES: usize = 255;

/// The identity provider returned more groups, or longer ones, than a user may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the identity provider says {count} groups, with names of up to {longest} bytes; a user may have {MAX_GROUPS}, of \
     {MAX_GROUP_BYTES} bytes each"
)]
pub struct UnlikelyGroups {
    /// The number of groups.
    pub count: usize,
    /// The length of the longest name, in bytes.
    pub longest: usize,
}

impl Identity {
    /// Creates a user of whom only the name, the UID and the GID are known.
    pub fn with_numbers(username: Username, uid: u32, gid: u32) -> Self {
        Self { username, uid, gid, groups: Vec::new(), email: None, display_name: None, quota: None }
    }

    /// Returns an error if the identity provider does not allow the user to start labs.
    pub fn may_spawn(&self) -> Result<(), SpawningForbidden> {
        self.quota.map_or(Ok(()), UserQuota::allows_spawning)
    }

    /// Adds the groups of these names that the user does not have yet, without GIDs.
    pub fn join<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        let known: HashSet<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
        let mut new = HashSet::new();
        let others = names.into_iter().filter(|name| !known.contains(name) && new.insert(*name));
        let others: Vec<Group> = others.map(|name| Group { name: name.to_owned(), gid: None }).collect();
        self.groups.extend(others);
    }

    /// Returns an error if there are too many groups, or if their names are too long. The groups are stored for each
    /// user, passed to policies, and written into objects.
    pub fn check_groups(&self) -> Result<(), UnlikelyGroups> {
        let count = self.groups.len();
        let longest = self.groups.iter().map(|group| group.name.len()).max().unwrap_or_default();
        if count > MAX_GROUPS || longest > MAX_GROUP_BYTES {
            return Err(UnlikelyGroups { count, longest });
        }
        Ok(())
    }

    /// Returns the user's home, `/home/<username>`.
    pub fn home(&self) -> String {
        format!("/home/{}", in_user_files(self.username.as_str()))
    }

    /// Returns the names of the user's groups.
    pub fn group_names(&self) -> Vec<String> {
        self.groups.iter().map(|group| group.name.clone()).collect()
    }

    /// Returns the GIDs of a process besides its primary one, in the given order, without duplicates.
    pub fn supplemental_gids(&self) -> Vec<u32> {
        let mut seen = HashSet::from([self.gid]);
        self.groups.iter().filter_map(|group| group.gid).filter(|gid| seen.insert(*gid)).collect()
    }
}

/// Returns a name as it is written in `/etc/passwd` and `/etc/group`: every separator of fields and lines is replaced
/// by `_`.
pub(crate) fn in_user_files(name: &str) -> String {
    name.chars().map(|c| if c.is_control() || matches!(c, ':' | ',' | '/') { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supplemental_gids_leave_out_the_primary_and_groups_without_gid() {
        let group = |name: &str, gid| Group { name: name.into(), gid };
        let groups =
            vec![group("rra", Some(7)), group("lsst", Some(9)), group("web", None), group("lsst2", Some(9))];
        let identity = Identity { groups, ..Identity::with_numbers(Username::parse("rra").unwrap(), 7, 7) };
        assert_eq!(identity.supplemental_gids(), [9]);
    }

    #[test]
    fn a_user_joins_each_group_once() {
        let mut identity = Identity::with_numbers(Username::parse("rra").unwrap(), 7, 7);
        identity.join(["a", "b", "a"]);
        identity.join(["b", "c"]);
        assert_eq!(identity.group_names(), ["a", "b", "c"]);
    }

    #[test]
    fn more_groups_than_anybody_has_are_refused() {
        for (count, length, refused) in [
            (MAX_GROUPS, 9, false),
            (MAX_GROUPS + 1, 9, true),
            (1, MAX_GROUP_BYTES, false),
            (1, MAX_GROUP_BYTES + 1, true),
        ] {
            let mut identity = Identity::with_numbers(Username::parse("rra").unwrap(), 7, 7);
            let names: Vec<String> = (0..count).map(|n| format!("{n:0>length$}")).collect();
            identity.join(names.iter().map(String::as_str));
            assert_eq!(identity.check_groups().is_err(), refused, "{count} of {length}");
        }
    }
}
