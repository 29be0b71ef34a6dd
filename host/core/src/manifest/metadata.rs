//! Labels and annotations that show which lab and which installation an object belongs to.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::config::lab::ArgoCd;
use crate::names::labels::{
    COMPONENT_LABEL, INSTANCE_LABEL, JOB_ID_LABEL, LAB_ENV, MANAGED_BY_LABEL, MANAGED_BY_VALUE, SERVER_LABEL,
    SERVERNAME_ANNOTATION, SPAWN_LABEL, USER_LABEL, USERNAME_ANNOTATION, of_installation,
};
use crate::names::{LabelValue, ObjectName};
use crate::policy::ValidatedSpawn;

const ARGO_CD_INSTANCE: &str = "argocd.argoproj.io/instance";
const ARGO_CD_COMPARE: &str = "argocd.argoproj.io/compare-options";
const ARGO_CD_SYNC: &str = "argocd.argoproj.io/sync-options";

/// Selects every object of one installation of the service.
pub fn service_selector(instance: &LabelValue) -> String {
    format!("{MANAGED_BY_LABEL}={MANAGED_BY_VALUE},{INSTANCE_LABEL}={instance}")
}

/// Selects the objects that belong to the spawn of one record. This excludes the volume claims, which the user keeps.
pub fn spawn_selector(instance: &LabelValue, spawn: &LabelValue) -> String {
    format!("{},{SPAWN_LABEL}={spawn}", service_selector(instance))
}

/// Selects the environment `ConfigMap`s of all labs.
pub fn environment_selector(instance: &LabelValue) -> String {
    format!("{},{COMPONENT_LABEL}={LAB_ENV}", service_selector(instance))
}

/// Builds the metadata of an object that belongs to one lab.
pub(super) fn of_lab(spawn: &ValidatedSpawn, name: &ObjectName) -> ObjectMeta {
    let mut meta = of_user(spawn, name);
    let labels = meta.labels.get_or_insert_default();
    labels.insert(SERVER_LABEL.to_owned(), spawn.names.server_label.to_string());
    labels.insert(SPAWN_LABEL.to_owned(), spawn.spawn.to_string());
    labels.insert(JOB_ID_LABEL.to_owned(), spawn.job_id.to_string());
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(SERVERNAME_ANNOTATION.to_owned(), spawn.key.server.to_string());
    meta
}

/// Builds the metadata of an object that the user's labs share, or that outlives them.
pub(super) fn of_user(spawn: &ValidatedSpawn, name: &ObjectName) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_string()),
        namespace: Some(spawn.names.namespace.to_string()),
        labels: Some(user_labels(spawn)),
        annotations: Some(user_annotations(spawn)),
        ..ObjectMeta::default()
    }
}

/// Builds the metadata of a retained namespace, which belongs to no lab.
pub(super) fn of_retained_namespace(spawn: &ValidatedSpawn) -> ObjectMeta {
    let mut labels = argo_cd_labels(spawn);
    labels.extend(of_installation(&spawn.instance));
    let annotations = argo_cd_annotations(spawn);
    ObjectMeta {
        name: Some(spawn.names.namespace.to_string()),
        labels: Some(labels),
        annotations: (!annotations.is_empty()).then_some(annotations),
        ..ObjectMeta::default()
    }
}

fn argo_cd_labels(spawn: &ValidatedSpawn) -> BTreeMap<String, String> {
    let label = |argo_cd: &ArgoCd| (ARGO_CD_INSTANCE.to_owned(), argo_cd.instance.to_string());
    spawn.config.argo_cd.iter().map(label).collect()
}

fn argo_cd_annotations(spawn: &ValidatedSpawn) -> BTreeMap<String, String> {
    let annotations = |argo_cd: &ArgoCd| {
        [
            (ARGO_CD_COMPARE.to_owned(), argo_cd.compare_options.clone()),
            (ARGO_CD_SYNC.to_owned(), argo_cd.sync_options.clone()),
        ]
    };
    spawn.config.argo_cd.iter().flat_map(annotations).collect()
}

fn user_labels(spawn: &ValidatedSpawn) -> BTreeMap<String, String> {
    let mut labels = argo_cd_labels(spawn);
    labels.extend(spawn.site_labels.clone());
    labels.extend(of_installation(&spawn.instance));
    labels.insert(USER_LABEL.to_owned(), spawn.names.user_label.to_string());
    labels
}

fn user_annotations(spawn: &ValidatedSpawn) -> BTreeMap<String, String> {
    let mut annotations = argo_cd_annotations(spawn);
    annotations.extend(spawn.site_annotations.clone());
    annotations.insert(USERNAME_ANNOTATION.to_owned(), spawn.key.user.to_string());
    annotations
}
