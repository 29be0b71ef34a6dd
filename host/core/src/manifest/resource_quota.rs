use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec};

use super::metadata;
use crate::policy::ValidatedSpawn;
use crate::users::quota::Quantity;

/// Builds the user's limits. The cluster enforces them on all pods and claims of the namespace, not only on labs.
pub(super) fn build(spawn: &ValidatedSpawn) -> Option<ResourceQuota> {
    let quota = &spawn.quota;
    if quota.is_unlimited() {
        return None;
    }
    let plain = [
        ("limits.cpu", quota.cpu_millis.map(Quantity::millis)),
        ("limits.memory", quota.memory_bytes.map(Quantity::bytes)),
        ("requests.storage", quota.storage_bytes.map(Quantity::bytes)),
        ("pods", quota.pods.map(|pods| Quantity::count(pods.into()))),
    ];
    let mut hard: BTreeMap<_, _> =
        plain.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?.into()))).collect();
    for (name, limit) in &quota.extended {
        // Kubernetes counts extended resources by their requests only.
        hard.insert(format!("requests.{name}"), Quantity::count(*limit).into());
    }
    Some(ResourceQuota {
        metadata: metadata::of_lab(spawn, &spawn.names.object),
        spec: Some(ResourceQuotaSpec { hard: Some(hard), ..ResourceQuotaSpec::default() }),
        ..ResourceQuota::default()
    })
}
