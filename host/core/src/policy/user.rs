use serde::{Deserialize, Serialize};

use crate::users::identity::{Group, Identity};
use crate::users::quota::UserQuota;

/// The user, as policies see them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The raw username, as the identity provider spells it.
    pub name: String,
    /// The user's UID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The GID of the primary group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// All groups. The primary one is included if the identity provider lists it.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// The mail address, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The full name, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The quota that the identity provider sets for the user, if it sets one. The service enforces it in addition to
    /// the policies' own limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<UserQuota>,
}

impl User {
    /// The names of the user's groups.
    pub fn group_names(&self) -> Vec<String> {
        self.groups.iter().map(|group| group.name.clone()).collect()
    }
}

impl From<&Identity> for User {
    fn from(identity: &Identity) -> Self {
        Self {
            name: identity.username.to_string(),
            uid: Some(identity.uid),
            gid: Some(identity.gid),
            groups: identity.groups.clone(),
            email: identity.email.clone(),
            display_name: identity.display_name.clone(),
            quota: identity.quota,
        }
    }
}
