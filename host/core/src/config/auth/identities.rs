//! `auth.identities`: users whose UIDs, GIDs and groups are configured here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Username;
use crate::users::identity::{Group, Identity, UnlikelyGroups};

/// UIDs, GIDs and groups of users for whom the identity provider has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identities {
    /// Entries by username.
    #[serde(default)]
    pub users: BTreeMap<Username, IdentityEntry>,
    /// The entry for every other user. Without it, a user for whom no UID is known cannot start a lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<IdentityEntry>,
}

/// The UID, GID, groups and names of one user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdentityEntry {
    /// The UID that the lab's processes run as.
    pub uid: u32,
    /// The GID of the user's primary group.
    pub gid: u32,
    /// All groups of the user. A group's GID (`id`) is optional.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// The user's mail address. Only policies use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The name shown in the form's greeting. Policies get it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
}

/// Why a user's identity cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incomplete {
    /// Nobody says UID and GID, neither an identity provider nor the configuration.
    Numbers,
    /// Nobody says the groups. Policies decide by groups, so none is not assumed.
    Groups,
    /// There are too many groups.
    Unlikely(UnlikelyGroups),
}

impl Identities {
    /// The identity of a user: UID and GID as the provider says them, else from the configuration; groups from both. The
    /// groups of a user who has an entry of their own are known even if the provider does not say them.
    pub fn complete(
        &self,
        user: &Username,
        numbers: Option<(u32, u32)>,
        groups: Option<&[String]>,
    ) -> Result<Identity, Incomplete> {
        let mut identity = match (numbers, self.get(user)) {
            (None, Some(configured)) => configured,
            (None, None) => return Err(Incomplete::Numbers),
            (Some((uid, gid)), Some(configured)) => Identity { uid, gid, ..configured },
            (Some((uid, gid)), None) => Identity::with_numbers(user.clone(), uid, gid),
        };
        match groups {
            Some(groups) => identity.join(groups.iter().map(String::as_str)),
            None if self.users.contains_key(user) => {}
            None => return Err(Incomplete::Groups),
        }
        identity.check_groups().map_err(Incomplete::Unlikely)?;
        Ok(identity)
    }

    /// The entry of `username`, or else the default entry.
    pub fn get(&self, username: &Username) -> Option<Identity> {
        let known = self.users.get(username).or(self.default.as_ref())?;
        Some(Identity {
            username: username.clone(),
            uid: known.uid,
            gid: known.gid,
            groups: known.groups.clone(),
            email: known.email.clone(),
            display_name: known.display_name.clone(),
            quota: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_a_user_wins_over_the_default() {
        let yaml = "users: {ada: {uid: 7, gid: 8, groups: [{name: x, id: 9}, {name: y}]}}\ndefault: {uid: 1, gid: 2}\n";
        let identities: Identities = serde_saphyr::from_str(yaml).unwrap();
        let uid = |name: &str| identities.get(&Username::parse(name).unwrap()).unwrap().uid;
        assert_eq!((uid("ada"), uid("bob")), (7, 1));
    }

    #[test]
    fn without_a_default_an_unlisted_user_has_no_identity() {
        assert_eq!(Identities::default().get(&Username::parse("ada").unwrap()), None);
    }
}
