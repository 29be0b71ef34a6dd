use k8s_openapi::api::core::v1::ServiceAccount;

use super::metadata;
use crate::policy::ValidatedSpawn;

/// Builds the lab's own service account; none for a lab under an existing one. It has no permissions, and with it the pod
/// need not wait for the namespace's `default` one.
pub(super) fn build(spawn: &ValidatedSpawn) -> Option<ServiceAccount> {
    spawn.has_own_account.then(|| ServiceAccount {
        metadata: metadata::of_lab(spawn, &spawn.names.service_account),
        automount_service_account_token: Some(spawn.config.security.service_account_token),
        ..ServiceAccount::default()
    })
}
