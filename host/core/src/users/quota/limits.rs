use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The limits of one user: all their labs, and what the labs start, together. An absent limit does not limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quota {
    /// CPU in thousandths of a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Storage of volume claims in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_bytes: Option<u64>,
    /// Pods at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<u32>,
    /// Labs at the same time, named servers included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labs: Option<u32>,
    /// Extended resources, such as `nvidia.com/gpu`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extended: BTreeMap<String, u64>,
}

/// The present use of one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Labs that are running, starting or stopping.
    pub labs: u32,
}

impl Quota {
    /// Combines two quotas: the smaller value of each limit applies.
    #[must_use]
    pub fn smaller_of_each(mut self, other: Self) -> Self {
        self.cpu_millis = smaller(self.cpu_millis, other.cpu_millis);
        self.memory_bytes = smaller(self.memory_bytes, other.memory_bytes);
        self.storage_bytes = smaller(self.storage_bytes, other.storage_bytes);
        self.pods = smaller(self.pods, other.pods);
        self.labs = smaller(self.labs, other.labs);
        for (name, limit) in other.extended {
            self.extended.entry(name).and_modify(|old| *old = (*old).min(limit)).or_insert(limit);
        }
        self
    }

    /// True if the quota has no limit that a `ResourceQuota` can enforce.
    pub fn is_unlimited(&self) -> bool {
        let Self { cpu_millis, memory_bytes, storage_bytes, pods, labs: _, extended } = self;
        cpu_millis.is_none()
            && memory_bytes.is_none()
            && storage_bytes.is_none()
            && pods.is_none()
            && extended.is_empty()
    }

    /// Returns an error if a user with `usage` already has as many labs as the quota allows.
    pub fn allows_another_lab(&self, usage: Usage) -> Result<(), TooManyLabs> {
        match self.labs {
            Some(allowed) if usage.labs >= allowed => Err(TooManyLabs { allowed, running: usage.labs }),
            _ => Ok(()),
        }
    }
}

/// The error for a user who already has as many labs as the quota allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("You may have {allowed} labs at a time and have {running}; stop one first")]
pub struct TooManyLabs {
    /// The allowed number of labs.
    pub allowed: u32,
    /// The present number of labs.
    pub running: u32,
}

fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_of_each_resource_holds() {
        let site: Quota =
            serde_saphyr::from_str("{cpu_millis: 8000, labs: 3, extended: {nvidia.com/gpu: 2}}").unwrap();
        let group: Quota = serde_saphyr::from_str("{cpu_millis: 4000, memory_bytes: 10}").unwrap();
        let user: Quota =
            serde_saphyr::from_str("{labs: 5, extended: {nvidia.com/gpu: 1, x.io/y: 4}}").unwrap();
        let all = site.smaller_of_each(group).smaller_of_each(user);
        let expected =
            "{cpu_millis: 4000, memory_bytes: 10, labs: 3, extended: {nvidia.com/gpu: 1, x.io/y: 4}}";
        assert_eq!(all, serde_saphyr::from_str(expected).unwrap());
    }

    #[test]
    fn a_lab_above_the_limit_is_refused() {
        let two = Quota { labs: Some(2), ..Quota::default() };
        assert_eq!(two.allows_another_lab(Usage { labs: 1 }), Ok(()));
        let refusal = two.allows_another_lab(Usage { labs: 2 }).unwrap_err();
        assert_eq!(refusal.to_string(), "You may have 2 labs at a time and have 2; stop one first");
        assert_eq!(Quota::default().allows_another_lab(Usage { labs: 99 }), Ok(()));
        assert!(two.is_unlimited(), "labs are the service's to count, not the namespace's");
    }

    #[test]
    fn a_single_limit_makes_a_quota_limited() {
        for yaml in
            ["cpu_millis: 1", "memory_bytes: 1", "storage_bytes: 1", "pods: 1", "extended: {x.io/y: 1}"]
        {
            assert!(!serde_saphyr::from_str::<Quota>(yaml).unwrap().is_unlimited(), "{yaml}");
        }
    }
}
