use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem, LimitRangeSpec};

use super::metadata;
use crate::policy::ValidatedSpawn;
use crate::quota::Quantity;

/// Default resources for containers of the namespace that set none. Where a quota limits CPU or memory, the cluster
/// refuses containers without them. The defaults are the lab's own size, or else the whole quota.
pub(super) fn build(spawn: &ValidatedSpawn) -> Option<LimitRange> {
    let (quota, lab) = (&spawn.quota, &spawn.resources);
    let cpu = quota.cpu_millis.map(|most| {
        let limit = lab.cpu_limit_millis.unwrap_or(most);
        (Quantity::millis(limit), Quantity::millis(lab.cpu_request_millis.unwrap_or(limit)))
    });
    let memory = quota.memory_bytes.map(|most| {
        let limit = lab.memory_limit_bytes.unwrap_or(most);
        (Quantity::bytes(limit), Quantity::bytes(lab.memory_request_bytes.unwrap_or(limit)))
    });
    let (mut limits, mut requests) = (BTreeMap::new(), BTreeMap::new());
    for (name, amounts) in [("cpu", cpu), ("memory", memory)] {
        if let Some((limit, request)) = amounts {
            limits.insert(name.to_owned(), limit.into());
            requests.insert(name.to_owned(), request.min(limit).into());
        }
    }
    if limits.is_empty() {
        return None;
    }
    let item = LimitRangeItem {
        type_: "Container".to_owned(),
        default: Some(limits),
        default_request: Some(requests),
        ..LimitRangeItem::default()
    };
    Some(LimitRange {
        metadata: metadata::of_lab(spawn, &spawn.names.object),
        spec: Some(LimitRangeSpec { limits: vec![item] }),
    })
}
