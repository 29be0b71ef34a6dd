use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodResourceClaim, ResourceClaim, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubernetesQuantity;

use crate::policy::{Resources, ValidatedSpawn};
use crate::users::quota::Quantity;

type Amounts = BTreeMap<String, KubernetesQuantity>;

/// Converts the resources of a container. Returns `None` if none are set.
pub(super) fn requirements(resources: &Resources) -> Option<ResourceRequirements> {
    let amounts = |cpu: Option<u64>, memory: Option<u64>| -> Amounts {
        let extended =
            resources.extended.iter().map(|(name, amount)| (name.clone(), Quantity::count(*amount)));
        let cpu = cpu.map(|cpu| ("cpu".to_owned(), Quantity::millis(cpu)));
        let memory = memory.map(|memory| ("memory".to_owned(), Quantity::bytes(memory)));
        cpu.into_iter().chain(memory).chain(extended).map(|(name, amount)| (name, amount.into())).collect()
    };
    let limits = amounts(resources.cpu_limit_millis, resources.memory_limit_bytes);
    let requests = amounts(resources.cpu_request_millis, resources.memory_request_bytes);
    let claims: Vec<_> = resources
        .claims
        .iter()
        .map(|claim| ResourceClaim { name: claim.name.clone(), request: claim.request.clone() })
        .collect();
    if limits.is_empty() && requests.is_empty() && claims.is_empty() {
        return None;
    }
    Some(ResourceRequirements {
        limits: (!limits.is_empty()).then_some(limits),
        requests: (!requests.is_empty()).then_some(requests),
        claims: (!claims.is_empty()).then_some(claims),
    })
}

/// Returns the pod's claims on devices, which its containers refer to. Of several claims with the same name the first
/// is used.
pub(super) fn pod_claims(spawn: &ValidatedSpawn) -> Option<Vec<PodResourceClaim>> {
    let inits = spawn.init_containers.iter().filter_map(|init| init.resources.as_ref());
    let mut claims: Vec<PodResourceClaim> = Vec::new();
    for claim in std::iter::once(&spawn.resources).chain(inits).flat_map(|resources| &resources.claims) {
        if claims.iter().all(|known| known.name != claim.name) {
            claims.push(PodResourceClaim {
                name: claim.name.clone(),
                resource_claim_template_name: Some(claim.template.clone()),
                ..PodResourceClaim::default()
            });
        }
    }
    (!claims.is_empty()).then_some(claims)
}
