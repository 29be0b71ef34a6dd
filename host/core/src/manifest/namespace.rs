use k8s_openapi::api::core::v1::{Namespace, Pod};

use super::metadata;
use super::objects::LabObject;
use super::pod_security;
use crate::config::NamespaceReclaim;
use crate::names::labels::{ENFORCE_LABEL, OPERATION_ANNOTATION, OPERATION_SPAWN, SPEC_DIGEST_ANNOTATION};
use crate::policy::ValidatedSpawn;

/// Builds the namespace: the lab's own, or a retained one. A retained namespace gets those labels only
/// that are the same for all labs, and is not changed if it exists. Returns `None` where all labs are in one namespace that the operator has created.
pub(super) fn build(spawn: &ValidatedSpawn, pod: &Pod, digest: &str) -> Option<LabObject> {
    match spawn.namespaces {
        NamespaceReclaim::Delete => Some(LabObject::Namespace(own(spawn, pod, digest))),
        NamespaceReclaim::Retain => Some(LabObject::RetainedNamespace(retained(spawn))),
        NamespaceReclaim::Single => None,
    }
}

/// Builds a namespace for one lab, in which nothing may have more privileges than the lab's pod. A retained namespace
/// is no lab's own, so there the operator decides.
fn own(spawn: &ValidatedSpawn, pod: &Pod, digest: &str) -> Namespace {
    let mut metadata = metadata::of_lab(spawn, &spawn.names.namespace.clone().into());
    metadata.namespace = None;
    let level = pod_security::strictest(pod).as_str().to_owned();
    metadata.labels.get_or_insert_default().insert(ENFORCE_LABEL.to_owned(), level);
    metadata.annotations.get_or_insert_default().extend([
        (OPERATION_ANNOTATION.to_owned(), OPERATION_SPAWN.to_owned()),
        (SPEC_DIGEST_ANNOTATION.to_owned(), digest.to_owned()),
    ]);
    Namespace { metadata, ..Namespace::default() }
}

fn retained(spawn: &ValidatedSpawn) -> Namespace {
    Namespace { metadata: metadata::of_retained_namespace(spawn), ..Namespace::default() }
}
