use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::ObjectName;
use crate::secret::SecretBytes;

/// One key of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretKey {
    /// The Secret's name.
    pub name: ObjectName,
    /// The key within it: letters, digits, `-`, `_`, `.`.
    pub key: String,
}

/// A key of a Secret in the service's own namespace that is copied for every lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SiteSecret {
    /// The Secret's name.
    pub name: ObjectName,
    /// The key within it, and within the lab's Secret: letters, digits, `-`, `_`, `.`; not `token`.
    pub key: String,
    /// It is a registry credential (`.dockerconfigjson`): it goes to a Secret of its own that only the kubelet
    /// uses. At most one may be.
    #[serde(default)]
    pub pull_secret: bool,
}

impl SiteSecret {
    /// Where its value is found.
    pub fn secret_key(&self) -> SecretKey {
        SecretKey { name: self.name.clone(), key: self.key.clone() }
    }
}

/// The values of the site's secrets, as read from the cluster at the time of a spawn.
pub type SiteSecretData = BTreeMap<SecretKey, SecretBytes>;

/// The key of the user's own token in the lab's Secret (seed 000, "Secrets").
pub const TOKEN_KEY: &str = "token";

/// What the keys of environment variables in the lab's Secret start with.
pub const ENV_KEY_PREFIX: &str = "env.";
