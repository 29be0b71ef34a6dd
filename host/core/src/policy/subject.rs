//! What a call of a policy is about, beside the user and the options.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::blueprint::Resolved;
use crate::past_use::DaysOfUser;
use crate::spawn_key::ChildKind;

/// What a call of a policy is about, beside the user and the options. Policies ask for it with functions of `host`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The kernel or the Dask pool; `None` if the call is about a lab itself.
    pub child: Option<SubjectChild>,
    /// What the user has beside that.
    pub use_of_user: PresentUse,
    /// What the user has used in past days.
    pub past_days: Arc<DaysOfUser>,
    /// The blueprints that hold for the lab.
    pub blueprint: Option<SubjectBlueprint>,
}

/// The blueprints of a lab that a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectBlueprint {
    /// The name of the chosen one.
    pub chosen: Option<String>,
    /// The names of all, in the order in which they are merged.
    pub consists_of: Vec<String>,
    /// What they say together, as JSON.
    pub spec: String,
}

impl From<&Resolved> for SubjectBlueprint {
    fn from(resolved: &Resolved) -> Self {
        Self {
            chosen: resolved.chosen.as_ref().map(ToString::to_string),
            consists_of: resolved.consists_of.iter().map(ToString::to_string).collect(),
            // It has texts as keys and no number that JSON does not have, so this cannot fail.
            spec: serde_json::to_string(&resolved.spec).unwrap_or_default(),
        }
    }
}

/// A kernel or a Dask pool that a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectChild {
    /// What it is.
    pub kind: ChildKind,
    /// The name of the kernel spec, or that of the pool.
    pub name: String,
    /// How many workers the pool may have at the most; 0 for a kernel.
    pub workers: u32,
}

/// What a user has at one moment, of all labs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PresentUse {
    /// Labs that are running, starting or stopping.
    pub labs: u32,
    /// Kernels, likewise.
    pub kernels: u32,
    /// Dask pools, likewise.
    pub dask_pools: u32,
    /// How many workers these pools may have at the most, all together.
    pub dask_workers: u32,
    /// The limits of all pods together, in thousandths of a CPU. What has no limit counts as 0.
    pub cpu_millis: u64,
    /// The limits of all pods together, in bytes of memory. What has no limit counts as 0.
    pub memory_bytes: u64,
}
