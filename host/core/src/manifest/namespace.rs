use k8s_openapi::api::core::v1::Namespace;

use super::metadata::{self, JOB_ID, OPERATION, OPERATION_SPAWN, SERVERNAME, SPEC_DIGEST};
use crate::policy::ValidatedSpawn;

/// The namespace of the user's labs. It is theirs and not one lab's, so the last operation is in annotations.
pub(super) fn build(spawn: &ValidatedSpawn, digest: &str) -> Namespace {
    let mut metadata = metadata::of_user(spawn, &spawn.names.namespace.clone().into());
    metadata.namespace = None;
    metadata.annotations.get_or_insert_default().extend([
        (SERVERNAME.to_owned(), spawn.key.server.to_string()),
        (OPERATION.to_owned(), OPERATION_SPAWN.to_owned()),
        (JOB_ID.to_owned(), spawn.job_id.to_string()),
        (SPEC_DIGEST.to_owned(), digest.to_owned()),
    ]);
    Namespace { metadata, ..Namespace::default() }
}
