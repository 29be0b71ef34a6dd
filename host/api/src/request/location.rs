//! URL paths of labs.

use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::spawn_key::{ChildKind, SpawnKey};
use wasmspawner_core::values::percent::percent_encoded;

use super::prefix::Prefix;

/// Returns the URL path of a lab.
pub(crate) fn of_lab(prefix: &Prefix, key: &LabKey) -> String {
    format!("{}{}", prefix.as_str(), below_prefix(key))
}

/// Returns the URL path of a lab below the prefix.
pub(crate) fn below_prefix(key: &LabKey) -> String {
    let mut path = format!("/labs/{}", segment(key.user.as_str()));
    if !key.server.is_default() {
        path.push_str("/servers/");
        path.push_str(&segment(key.server.as_str()));
    }
    path
}

/// Returns the URL path of a lab, a kernel or a Dask pool below the prefix.
pub(crate) fn of_child(key: &SpawnKey) -> String {
    let lab = below_prefix(&key.lab);
    let Some(child) = &key.child else { return lab };
    let folder = match child.kind {
        ChildKind::Kernel => "kernels",
        ChildKind::DaskPool => "dask-pools",
    };
    format!("{lab}/{folder}/{}", segment(child.name.as_str()))
}

/// Encodes one segment of a path: everything but RFC 3986's unreserved characters and `@` is percent-encoded.
fn segment(name: &str) -> String {
    percent_encoded(name, b"@")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmspawner_core::names::{ServerName, Username};

    #[test]
    fn names_are_percent_encoded() {
        let key = |user: &str, server: &str| {
            LabKey::new(Username::parse(user).unwrap(), ServerName::parse(server).unwrap())
        };
        let prefix = Prefix::from_config(&wasmspawner_core::config::HttpConfig::default());
        assert_eq!(
            of_lab(&prefix, &key("ada.lovelace@example.org", "")),
            "/spawner/v1/labs/ada.lovelace@example.org"
        );
        assert_eq!(of_lab(&prefix, &key("a b%ü", "x?y")), "/spawner/v1/labs/a%20b%25%C3%BC/servers/x%3Fy");
    }
}
