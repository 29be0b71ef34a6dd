use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem, LimitRangeSpec};

use super::default_resources::{self, DefaultResource};
use super::metadata;
use crate::policy::ValidatedSpawn;
use crate::users::quota::Quantity;

/// Builds the default resources for containers of the namespace that set none, such as those of pods that the lab
/// starts.
pub(super) fn build(spawn: &ValidatedSpawn) -> Option<LimitRange> {
    let defaults = default_resources::from_spawn(spawn);
    if defaults.is_empty() {
        return None;
    }
    let amounts = |amount: fn(&DefaultResource) -> Quantity| {
        defaults.iter().map(|one| (one.name.to_owned(), amount(one).into())).collect::<BTreeMap<_, _>>()
    };
    let limits = amounts(|one| one.limit);
    let requests = amounts(|one| one.request);
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
