//! Parts of the security baseline that may be lifted in the labs of administrators.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::users::identity::Identity;
use crate::values::path;

/// Parts of the security baseline that may be lifted in labs of members of some groups. The site says it in
/// `lab.administrators`, and for each policy that may ask for it in the grant `administrators`. A part is lifted only if
/// both allow it for a group of the lab's user, and only in the lab's own container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdministratorLifts {
    /// The groups whose members may have such labs.
    pub groups: Vec<String>,
    /// The lab may run as root, with the container runtime's default capabilities.
    pub root: bool,
    /// The lab may run privileged: it has every right on its node.
    pub privileged: bool,
    /// Paths of the node that the lab may mount, with everything below them.
    pub paths: Vec<String>,
}

/// A part of the security baseline that is lifted in the lab of an administrator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lift {
    Root,
    Privileged,
    /// A path of the node.
    Path(String),
}

impl fmt::Display for Lift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Root => "root",
            Self::Privileged => "privileged",
            Self::Path(path) => path,
        })
    }
}

impl AdministratorLifts {
    /// Returns true if this part may be lifted in a lab of this user.
    pub(crate) fn allow(&self, lift: &Lift, user: &Identity) -> bool {
        let is_member = user.groups.iter().any(|group| self.groups.contains(&group.name));
        is_member
            && match lift {
                Lift::Root => self.root,
                Lift::Privileged => self.privileged,
                Lift::Path(wanted) => self.has_path(wanted),
            }
    }

    /// Returns true if this path of the node may be mounted.
    pub(crate) fn has_path(&self, wanted: &str) -> bool {
        self.paths.iter().any(|granted| path::is_below(wanted, granted))
    }

    /// Returns the first problem of the settings, with its key.
    pub(in crate::config) fn problem(&self) -> Option<(&'static str, String)> {
        let lifts_something = self.root || self.privileged || !self.paths.is_empty();
        if self.groups.is_empty() || self.groups.iter().any(String::is_empty) {
            return Some((
                "groups",
                "names no group; name the groups whose members may have such labs".to_owned(),
            ));
        }
        if !lifts_something {
            return Some((
                "groups",
                "is for nothing; set `root`, `privileged` or `paths` beside it".to_owned(),
            ));
        }
        let wrong = self.paths.iter().find(|path| !path::is_absolute(path));
        wrong.map(|path| ("paths", format!("`{path}` is not absolute, or has `..`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifts(yaml: &str) -> AdministratorLifts {
        serde_saphyr::from_str(yaml).unwrap()
    }

    fn user(groups: &[&str]) -> Identity {
        let groups: Vec<_> =
            groups.iter().map(|name| serde_json::json!({"name": name, "id": 2000})).collect();
        serde_json::from_value(
            serde_json::json!({"username": "ada", "uid": 1000, "gid": 1000, "groups": groups}),
        )
        .unwrap()
    }

    #[test]
    fn a_part_is_lifted_for_members_of_the_groups_and_for_nobody_else() {
        let path = |path: &str| Lift::Path(path.to_owned());
        let all = lifts("{groups: [ops, admins], root: true, privileged: true, paths: [/scratch]}");
        for lift in [Lift::Root, Lift::Privileged, path("/scratch"), path("/scratch/ada")] {
            assert!(all.allow(&lift, &user(&["staff", "admins"])), "{lift}");
            assert!(!all.allow(&lift, &user(&["staff"])), "{lift}");
            assert!(!all.allow(&lift, &user(&[])), "{lift}");
            assert!(!AdministratorLifts::default().allow(&lift, &user(&["ops"])), "{lift}");
            assert!(!lifts("{groups: [ops]}").allow(&lift, &user(&["ops"])), "{lift}");
        }
        for path in [path("/"), path("/scratchy"), path("/etc")] {
            assert!(!all.allow(&path, &user(&["ops"])), "{path}");
        }
    }

    #[test]
    fn settings_that_allow_nothing_are_mistakes() {
        assert_eq!(lifts("{groups: [ops], root: true}").problem(), None);
        for (yaml, key) in [
            ("{root: true}", "groups"),
            ("{groups: [''], root: true}", "groups"),
            ("{groups: [ops]}", "groups"),
            ("{groups: [ops], paths: [scratch]}", "paths"),
            ("{groups: [ops], paths: [/scratch/../etc]}", "paths"),
        ] {
            assert_eq!(lifts(yaml).problem().map(|(key, _)| key), Some(key), "{yaml}");
        }
    }
}
