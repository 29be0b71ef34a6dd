//! The quality-of-service class. Source: Kubernetes documentation, "Pod Quality of Service Classes".

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::PodSpec, apimachinery::pkg::api::resource::Quantity};

use crate::kubelet::quantity::milli;

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub(crate) fn qos_class(spec: &PodSpec) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
        let resources = container.resources.as_ref();
        let limits = resources.and_then(|resources| resources.limits.as_ref());
        let requests = resources.and_then(|resources| resources.requests.as_ref());
        for resource in ["cpu", "memory"] {
            let limit = amount(limits, resource);
            // An absent request defaults to the limit.
            let request = amount(requests, resource).or(limit);
            any |= limit.is_some() || request.is_some();
            guaranteed &= limit.is_some() && request == limit;
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn amount(map: Option<&BTreeMap<String, Quantity>>, resource: &str) -> Option<i128> {
    map?.get(resource).and_then(|quantity| milli(&quantity.0)).filter(|amount| *amount > 0)
}
