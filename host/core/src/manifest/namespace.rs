use k8s_openapi::api::core::v1::Namespace;

use super::metadata::{self, OPERATION_ANNOTATION, OPERATION_SPAWN, SPEC_DIGEST_ANNOTATION};
use crate::policy::ValidatedSpawn;

/// The namespace: the lab's own unless the operator's template says otherwise; then it shows the last spawn in it.
pub(super) fn build(spawn: &ValidatedSpawn, digest: &str) -> Namespace {
    let mut metadata = metadata::of_lab(spawn, &spawn.names.namespace.clone().into());
    metadata.namespace = None;
    metadata.annotations.get_or_insert_default().extend([
        (OPERATION_ANNOTATION.to_owned(), OPERATION_SPAWN.to_owned()),
        (SPEC_DIGEST_ANNOTATION.to_owned(), digest.to_owned()),
    ]);
    Namespace { metadata, ..Namespace::default() }
}
