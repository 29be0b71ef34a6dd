//! The user for whom a request is made, as the identity provider describes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Username;
use crate::quota::{SpawningForbidden, UserQuota};

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

impl Identity {
    /// A user about whom nothing but the name and the numbers is known.
    pub fn with_numbers(username: Username, uid: u32, gid: u32) -> Self {
        Self { username, uid, gid, groups: Vec::new(), email: None, display_name: None, quota: None }
    }

    /// Returns an error if the identity provider does not allow the user to start labs.
    pub fn may_spawn(&self) -> Result<(), SpawningForbidden> {
        self.quota.map_or(Ok(()), UserQuota::allows_spawning)
    }

    /// Adds the groups of these names that the user does not have yet; their GIDs are not known.
    pub fn join<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            if self.groups.iter().all(|group| group.name != name) {
                self.groups.push(Group { name: name.to_owned(), gid: None });
            }
        }
    }

    /// The user's home, `/home/<username>`.
    pub fn home(&self) -> String {
        format!("/home/{}", in_user_files(self.username.as_str()))
    }

    /// The names of the user's groups.
    pub fn group_names(&self) -> Vec<String> {
        self.groups.iter().map(|group| group.name.clone()).collect()
    }

    /// The GIDs of a process besides its primary one, in the given order, without duplicates.
    pub fn supplemental_gids(&self) -> Vec<u32> {
        let mut gids = Vec::new();
        for gid in self.groups.iter().filter_map(|group| group.gid) {
            if gid != self.gid && !gids.contains(&gid) {
                gids.push(gid);
            }
        }
        gids
    }
}

/// A name as `/etc/passwd` and `/etc/group` have it: every separator of fields and lines is replaced by `_`.
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
}
