//! Labels and annotations: how an object says whose it is.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::names::ObjectName;
use crate::policy::{MANAGED_BY_KEY, ValidatedSpawn};

/// Label: the program that made the object.
pub const MANAGED_BY: &str = MANAGED_BY_KEY;
/// The value of [`MANAGED_BY`].
pub const MANAGED_BY_VALUE: &str = "wasmspawner";
/// Label: which installation of the service made it.
pub const INSTANCE: &str = "wasmspawner.io/instance";
/// Label: the user's slug.
pub const USER: &str = "wasmspawner.io/user";
/// Label: the server's slug; empty for the default server.
pub const SERVER: &str = "wasmspawner.io/server";
/// Label: the spawn that made it.
pub const JOB_ID: &str = "wasmspawner.io/job-id";
/// Annotation: the raw username.
pub const USERNAME: &str = "wasmspawner.io/username";
/// Annotation: the raw server name.
pub const SERVERNAME: &str = "wasmspawner.io/servername";
/// Annotation of the namespace: what was last begun in it.
pub const OPERATION: &str = "wasmspawner.io/operation";
/// The value of [`OPERATION`] after a spawn began.
pub const OPERATION_SPAWN: &str = "spawn";
/// Annotation of the namespace: `sha256:` of what the lab was to be.
pub const SPEC_DIGEST: &str = "wasmspawner.io/spec-digest";

const ARGO_CD_INSTANCE: &str = "argocd.argoproj.io/instance";
const ARGO_CD_COMPARE: &str = "argocd.argoproj.io/compare-options";
const ARGO_CD_SYNC: &str = "argocd.argoproj.io/sync-options";

/// Metadata of something that belongs to one lab.
pub(super) fn of_lab(spawn: &ValidatedSpawn, name: &ObjectName) -> ObjectMeta {
    let mut meta = of_user(spawn, name);
    let labels = meta.labels.get_or_insert_default();
    labels.insert(SERVER.to_owned(), spawn.names.server_label.to_string());
    labels.insert(JOB_ID.to_owned(), spawn.job_id.to_string());
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(SERVERNAME.to_owned(), spawn.key.server.to_string());
    meta
}

/// Metadata of something that the user's labs share, or that outlives them.
pub(super) fn of_user(spawn: &ValidatedSpawn, name: &ObjectName) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_string()),
        namespace: Some(spawn.names.namespace.to_string()),
        labels: Some(user_labels(spawn)),
        annotations: Some(user_annotations(spawn)),
        ..ObjectMeta::default()
    }
}

fn user_labels(spawn: &ValidatedSpawn) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    if let Some(argo_cd) = &spawn.config.argo_cd {
        labels.insert(ARGO_CD_INSTANCE.to_owned(), argo_cd.instance.to_string());
    }
    labels.extend(spawn.site_labels.clone());
    labels.extend([
        (MANAGED_BY.to_owned(), MANAGED_BY_VALUE.to_owned()),
        (INSTANCE.to_owned(), spawn.config.instance.to_string()),
        (USER.to_owned(), spawn.names.user_label.to_string()),
    ]);
    labels
}

fn user_annotations(spawn: &ValidatedSpawn) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::new();
    if let Some(argo_cd) = &spawn.config.argo_cd {
        annotations.insert(ARGO_CD_COMPARE.to_owned(), argo_cd.compare_options.clone());
        annotations.insert(ARGO_CD_SYNC.to_owned(), argo_cd.sync_options.clone());
    }
    annotations.extend(spawn.site_annotations.clone());
    annotations.insert(USERNAME.to_owned(), spawn.key.user.to_string());
    annotations
}
