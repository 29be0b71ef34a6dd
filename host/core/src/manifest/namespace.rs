use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::metadata::{self};
use super::objects::LabObject;
use crate::config::NamespaceReclaim;
use crate::labels::{OPERATION_ANNOTATION, OPERATION_SPAWN, SPEC_DIGEST_ANNOTATION};
use crate::policy::ValidatedSpawn;

/// The namespace: the lab's own, or a retained one. A retained namespace gets no lab's labels, and is not changed if it
/// exists.
pub(super) fn build(spawn: &ValidatedSpawn, digest: &str) -> LabObject {
    match spawn.namespaces {
        NamespaceReclaim::Delete => LabObject::Namespace(own(spawn, digest)),
        NamespaceReclaim::Retain => LabObject::RetainedNamespace(retained(spawn)),
    }
}

fn own(spawn: &ValidatedSpawn, digest: &str) -> Namespace {
    let mut metadata = metadata::of_lab(spawn, &spawn.names.namespace.clone().into());
    metadata.namespace = None;
    metadata.annotations.get_or_insert_default().extend([
        (OPERATION_ANNOTATION.to_owned(), OPERATION_SPAWN.to_owned()),
        (SPEC_DIGEST_ANNOTATION.to_owned(), digest.to_owned()),
    ]);
    Namespace { metadata, ..Namespace::default() }
}

fn retained(spawn: &ValidatedSpawn) -> Namespace {
    let metadata = ObjectMeta {
        name: Some(spawn.names.namespace.to_string()),
        labels: Some(metadata::service_labels(spawn)),
        ..ObjectMeta::default()
    };
    Namespace { metadata, ..Namespace::default() }
}
