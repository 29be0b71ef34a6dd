use std::collections::BTreeMap;

use wasmspawner_sdk::quota::{Quota, Usage};
use wasmspawner_sdk::{Error, Section, User, hooks, quantity};

use crate::DefaultPolicy;
use crate::children::ChildLimits;

/// The limits of every user, and of members of particular groups.
#[derive(Default)]
pub(crate) struct Quotas {
    default: Limits,
    groups: BTreeMap<String, Limits>,
}

/// The limits of some users: on resources, and on the children of labs.
#[derive(Default)]
struct Limits {
    quota: Quota,
    children: ChildLimits,
}

impl Quotas {
    pub(crate) fn read(config: &mut Section<'_>) -> Self {
        let read = config.section("quota", |quota| Self {
            default: quota.section("default", limits).unwrap_or_default(),
            groups: quota.map("groups", limits),
        });
        read.unwrap_or_default()
    }

    /// The limits of a user. Each is the largest one of the user's groups, or else the default.
    fn of(&self, user: &User) -> Quota {
        let groups: Vec<&Quota> = self.groups_of(user).map(|limits| &limits.quota).collect();
        let default = &self.default.quota;
        Quota {
            cpu_millis: largest(&groups, |quota| quota.cpu_millis).or(default.cpu_millis),
            memory_bytes: largest(&groups, |quota| quota.memory_bytes).or(default.memory_bytes),
            storage_bytes: largest(&groups, |quota| quota.storage_bytes).or(default.storage_bytes),
            pods: largest(&groups, |quota| quota.pods).or(default.pods),
            labs: largest(&groups, |quota| quota.labs).or(default.labs),
            extended: extended(&groups, default),
        }
    }

    /// The limits on the children of a user's labs, by the same rule.
    pub(crate) fn of_children(&self, user: &User) -> ChildLimits {
        let of = |limit: fn(&ChildLimits) -> Option<u32>| {
            let largest = self.groups_of(user).filter_map(|limits| limit(&limits.children)).max();
            largest.or_else(|| limit(&self.default.children))
        };
        ChildLimits {
            kernels: of(|limits| limits.kernels),
            dask_pools: of(|limits| limits.dask_pools),
            dask_workers: of(|limits| limits.dask_workers),
        }
    }

    fn groups_of<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Limits> {
        self.groups.iter().filter(|(group, _)| user.is_in(group)).map(|(_, limits)| limits)
    }
}

fn largest<T: Ord>(groups: &[&Quota], limit: impl Fn(&Quota) -> Option<T>) -> Option<T> {
    groups.iter().filter_map(|quota| limit(quota)).max()
}

fn extended(groups: &[&Quota], default: &Quota) -> Vec<(String, u64)> {
    let mut limits: BTreeMap<&String, u64> = BTreeMap::new();
    for (name, amount) in groups.iter().flat_map(|quota| &quota.extended) {
        let limit = limits.entry(name).or_default();
        *limit = (*limit).max(*amount);
    }
    for (name, amount) in &default.extended {
        limits.entry(name).or_insert(*amount);
    }
    limits.into_iter().map(|(name, amount)| (name.clone(), amount)).collect()
}

fn limits(entry: &mut Section<'_>) -> Limits {
    let children = ChildLimits::read(entry);
    let quota = Quota {
        cpu_millis: entry.parsed("cpu", quantity::cpu_millis),
        memory_bytes: entry.parsed("memory", quantity::bytes),
        storage_bytes: entry.parsed("storage", quantity::bytes),
        pods: entry.optional("pods"),
        labs: entry.optional("labs"),
        extended: entry.or_default::<BTreeMap<String, u64>>("extended").into_iter().collect(),
    };
    Limits { quota, children }
}

impl hooks::Quota for DefaultPolicy {
    fn limits(&self, user: &User, _: &Usage) -> Result<Quota, Error> {
        Ok(self.quotas.of(user))
    }
}
