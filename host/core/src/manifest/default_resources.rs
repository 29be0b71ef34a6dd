//! Default resources for containers that set none, where a quota limits CPU or memory. There the cluster refuses
//! containers without them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Container;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubernetesQuantity;

use crate::policy::ValidatedSpawn;
use crate::users::quota::Quantity;

/// The default of one resource.
#[derive(Clone, Copy)]
pub(super) struct DefaultResource {
    /// `cpu` or `memory`.
    pub(super) name: &'static str,
    pub(super) limit: Quantity,
    pub(super) request: Quantity,
}

/// Returns the defaults: the lab's own size, or else the whole quota.
pub(super) fn from_spawn(spawn: &ValidatedSpawn) -> Vec<DefaultResource> {
    let (quota, lab) = (&spawn.quota, &spawn.resources);
    let of_one =
        |name, most: Option<u64>, limit: Option<u64>, request: Option<u64>, unit: fn(u64) -> Quantity| {
            let limit = limit.unwrap_or(most?);
            let request = unit(request.unwrap_or(limit).min(limit));
            Some(DefaultResource { name, limit: unit(limit), request })
        };
    let cpu = of_one("cpu", quota.cpu_millis, lab.cpu_limit_millis, lab.cpu_request_millis, Quantity::millis);
    let memory = of_one(
        "memory",
        quota.memory_bytes,
        lab.memory_limit_bytes,
        lab.memory_request_bytes,
        Quantity::bytes,
    );
    cpu.into_iter().chain(memory).collect()
}

/// Sets the resources that the container lacks. A limit range does the same, but an API server may not have read it yet
/// when the pod is created. Where all labs are in one namespace, there is no limit range.
pub(super) fn apply(container: &mut Container, defaults: &[DefaultResource]) {
    if defaults.is_empty() {
        return;
    }
    let resources = container.resources.get_or_insert_default();
    let (limits, requests) =
        (resources.limits.get_or_insert_default(), resources.requests.get_or_insert_default());
    for default in defaults {
        let request = written(requests, default.name);
        let limit = written(limits, default.name);
        // As in Kubernetes, a container with a limit and no request asks for its limit.
        let request = request.unwrap_or(limit.unwrap_or(default.request));
        let limit = limit.unwrap_or(default.limit.max(request));
        limits.entry(default.name.to_owned()).or_insert_with(|| limit.into());
        requests.entry(default.name.to_owned()).or_insert_with(|| request.into());
    }
}

fn written(amounts: &BTreeMap<String, KubernetesQuantity>, name: &str) -> Option<Quantity> {
    amounts.get(name)?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_a_container_lacks_is_set_as_a_limit_range_would() {
        let defaults =
            [DefaultResource { name: "cpu", limit: Quantity::millis(2000), request: Quantity::millis(500) }];
        for (own, expected) in [
            (json!({}), json!({"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}})),
            (json!({"limits": {"cpu": "1"}}), json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}})),
            (json!({"requests": {"cpu": "1"}}), json!({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}})),
            (json!({"requests": {"cpu": "3"}}), json!({"limits": {"cpu": "3"}, "requests": {"cpu": "3"}})),
            (
                json!({"limits": {"memory": "1Gi"}, "requests": {"cpu": "100m"}}),
                json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "100m"}}),
            ),
        ] {
            let mut container: Container =
                serde_json::from_value(json!({"name": "x", "resources": own})).unwrap();
            apply(&mut container, &defaults);
            let resources: Value = serde_json::to_value(container.resources).unwrap();
            assert_eq!(resources, expected, "{own}");
        }
    }
}
