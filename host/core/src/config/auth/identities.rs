//! `auth.identities`: what the service knows about users by itself.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::identity::{Group, Identity};
use crate::names::Username;

/// Numbers and groups of users, for those whom the identity provider tells nothing about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identities {
    /// By username.
    #[serde(default)]
    pub users: BTreeMap<Username, IdentityEntry>,
    /// For everybody else; without it, a user who is unknown everywhere may not spawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<IdentityEntry>,
}

/// What is known about one user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdentityEntry {
    /// The user that lab processes run as.
    pub uid: u32,
    /// Their primary group.
    pub gid: u32,
    /// Every group of the user; the number (`id`) is optional.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// For policies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// For policies and the form's greeting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
}

impl Identities {
    /// What is known about `username`: their own entry, else the default.
    pub fn get(&self, username: &Username) -> Option<Identity> {
        let known = self.users.get(username).or(self.default.as_ref())?;
        Some(Identity {
            username: username.clone(),
            uid: known.uid,
            gid: known.gid,
            groups: known.groups.clone(),
            email: known.email.clone(),
            display_name: known.display_name.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_entry_wins_over_the_default() {
        let yaml = "users: {ada: {uid: 7, gid: 8, groups: [{name: x, id: 9}, {name: y}]}}\ndefault: {uid: 1, gid: 2}\n";
        let identities: Identities = serde_saphyr::from_str(yaml).unwrap();
        let uid = |name: &str| identities.get(&Username::parse(name).unwrap()).unwrap().uid;
        assert_eq!((uid("ada"), uid("bob")), (7, 1));
    }

    #[test]
    fn without_a_default_the_unknown_stay_unknown() {
        assert_eq!(Identities::default().get(&Username::parse("ada").unwrap()), None);
    }
}
