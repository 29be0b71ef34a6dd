use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::ObjectName;
use crate::values::secret::SecretBytes;

/// One key of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretKey {
    /// The Secret's name.
    pub name: ObjectName,
    /// The key within the Secret: letters, digits, `-`, `_`, `.`.
    pub key: String,
}

/// A key of a Secret in the service's own namespace that is copied into every lab's Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SiteSecret {
    /// The Secret's name.
    pub name: ObjectName,
    /// The key in this Secret and in the lab's Secret: letters, digits, `-`, `_`, `.`; not `token`.
    pub key: String,
    /// True for a registry credential (`.dockerconfigjson`). It is copied into a separate Secret that only the kubelet
    /// uses to pull images. At most one entry may set this.
    #[serde(default)]
    pub pull_secret: bool,
}

impl SiteSecret {
    /// The Secret and key from which the value is read.
    pub fn secret_key(&self) -> SecretKey {
        SecretKey { name: self.name.clone(), key: self.key.clone() }
    }
}

/// The values of the site's secrets, as read from the cluster at the time of a spawn.
pub type SiteSecretData = BTreeMap<SecretKey, SecretBytes>;

/// The key of the user's own token in the lab's Secret (SQR-066, "Secrets").
pub const TOKEN_KEY: &str = "token";

/// Prefix of the keys that hold environment variables in the lab's Secret.
pub const ENV_KEY_PREFIX: &str = "env.";

/// The key of the request for the lab in the lab's Secret.
pub const REQUEST_KEY: &str = "wasmspawner.request";
