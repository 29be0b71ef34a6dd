use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::metadata;
use super::objects::LabObject;
use super::pod_security;
use crate::config::NamespaceReclaim;
use crate::names::labels::{
    ENFORCE_LABEL, JOB_ID_LABEL, KEPT_ANNOTATION, OPERATION_ANNOTATION, OPERATION_SPAWN,
    SPEC_DIGEST_ANNOTATION,
};
use crate::policy::ValidatedSpawn;
use crate::values::digest::Digest;

/// Builds the namespace: the lab's own, or a retained one. A retained namespace gets only those labels that are the same
/// for all labs, and is not changed if it exists. Returns `None` where all labs are in one namespace that the operator has
/// created.
pub(super) fn build(spawn: &ValidatedSpawn, pod: &Pod, digest: &str) -> Option<LabObject> {
    match spawn.namespaces {
        NamespaceReclaim::Delete => Some(LabObject::Namespace(own(spawn, pod, digest))),
        NamespaceReclaim::Retain => Some(LabObject::RetainedNamespace(retained(spawn))),
        NamespaceReclaim::Single => None,
    }
}

/// Builds a namespace for one lab, in which nothing may have more privileges than the lab's pod. A retained namespace
/// is no lab's own, so there the operator decides. The namespace may be kept for the next lab of the server unless the pod
/// could make objects in it that the service does not know.
fn own(spawn: &ValidatedSpawn, pod: &Pod, digest: &str) -> Namespace {
    let mut metadata = metadata::of_lab(spawn, &spawn.names.namespace.clone().into());
    metadata.namespace = None;
    let level = pod_security::strictest(pod).as_str().to_owned();
    metadata.labels.get_or_insert_default().insert(ENFORCE_LABEL.to_owned(), level);
    if !has_token(pod) {
        let kept_as = kept_as(&metadata);
        metadata.annotations.get_or_insert_default().insert(KEPT_ANNOTATION.to_owned(), kept_as);
    }
    metadata.annotations.get_or_insert_default().extend([
        (OPERATION_ANNOTATION.to_owned(), OPERATION_SPAWN.to_owned()),
        (SPEC_DIGEST_ANNOTATION.to_owned(), digest.to_owned()),
    ]);
    Namespace { metadata, ..Namespace::default() }
}

/// Returns the digest of the labels and annotations by which a namespace of an earlier spawn is compared with this one.
fn kept_as(metadata: &ObjectMeta) -> String {
    let mut labels = metadata.labels.clone().unwrap_or_default();
    labels.remove(JOB_ID_LABEL);
    Digest::sha256(json!([labels, metadata.annotations]).to_string().as_bytes()).to_string()
}

/// Returns true for a pod with a token for the Kubernetes API.
fn has_token(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let projected = spec.volumes.iter().flatten().filter_map(|volume| volume.projected.as_ref());
    let mut sources = projected.flat_map(|projected| projected.sources.iter().flatten());
    spec.automount_service_account_token != Some(false)
        || sources.any(|source| source.service_account_token.is_some())
}

fn retained(spawn: &ValidatedSpawn) -> Namespace {
    Namespace { metadata: metadata::of_retained_namespace(spawn), ..Namespace::default() }
}
