use k8s_openapi::api::core::v1::ServiceAccount;

use super::metadata;
use crate::policy::ValidatedSpawn;

/// The lab's own account: no waiting for the namespace's `default` account, and nothing it may do.
pub(super) fn build(spawn: &ValidatedSpawn) -> ServiceAccount {
    ServiceAccount {
        metadata: metadata::of_lab(spawn, &spawn.names.service_account),
        automount_service_account_token: Some(spawn.config.security.service_account_token),
        ..ServiceAccount::default()
    }
}
