use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;

use super::{metadata, user_files};
use crate::policy::ValidatedSpawn;

/// Key of the lab's `/etc/passwd`.
pub(super) const PASSWD: &str = "passwd";
/// Key of the lab's `/etc/group`.
pub(super) const GROUP: &str = "group";

/// The key of one of the site's files (`lab.files`), by its position.
pub(super) fn file_key(at: usize) -> String {
    format!("file.{at}")
}

/// Builds the files that give names to the lab's user and groups (SQR-066, "User and group mappings"), and those of the
/// site.
pub(super) fn build(spawn: &ValidatedSpawn) -> ConfigMap {
    let base = &spawn.config.user_files;
    let mut data = BTreeMap::from([
        (PASSWD.to_owned(), user_files::passwd(&base.passwd, &spawn.identity, &spawn.home())),
        (GROUP.to_owned(), user_files::group(&base.group, &spawn.identity)),
    ]);
    data.extend(spawn.config.files.values().enumerate().map(|(at, text)| (file_key(at), text.clone())));
    ConfigMap {
        metadata: metadata::of_lab(spawn, &spawn.names.nss),
        data: Some(data),
        ..ConfigMap::default()
    }
}
