use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::metadata;
use crate::config::lab::TOKEN_KEY;
use crate::names::EnvName;
use crate::policy::ValidatedSpawn;
use crate::policy::compose::LabValue;

/// Builds the lab's Secret: the user's token, the copied site secrets, and the credentials of its environment.
pub(super) fn build(spawn: &ValidatedSpawn) -> Secret {
    let mut data = BTreeMap::from([(TOKEN_KEY.to_owned(), ByteString(spawn.token.expose().into()))]);
    for (key, value) in &spawn.site_secrets {
        data.insert(key.clone(), ByteString(value.expose().to_vec()));
    }
    for (name, value) in &spawn.env {
        if let LabValue::Credential(value) = value {
            data.insert(env_key(name), ByteString(value.expose().into()));
        }
    }
    Secret {
        metadata: metadata::of_lab(spawn, &spawn.names.object),
        type_: Some("Opaque".to_owned()),
        data: Some(data),
        ..Secret::default()
    }
}

/// Returns the key of a variable. The prefix prevents a clash with the key `token` and with keys of site secrets.
pub(super) fn env_key(name: &EnvName) -> String {
    format!("{}{name}", crate::config::lab::ENV_KEY_PREFIX)
}

/// Returns the keys that are mounted into the lab as files, which excludes the environment variables.
pub(super) fn file_keys(spawn: &ValidatedSpawn) -> Vec<String> {
    std::iter::once(TOKEN_KEY.to_owned()).chain(spawn.site_secrets.keys().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kubernetes allows 253 characters.
    #[test]
    fn the_longest_name_of_a_variable_is_a_key_of_a_secret() {
        let longest = EnvName::parse("A".repeat(249)).unwrap();
        assert_eq!(env_key(&longest).len(), 253);
        assert!(EnvName::parse("A".repeat(250)).is_err());
    }
}
