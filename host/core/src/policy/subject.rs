//! The subject of a policy's call, beyond the user and the options.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::custom_resource::blueprint::Resolved;
use crate::names::spawn_key::ChildKind;
use crate::policy::usage::DaysOfUser;
use crate::values::options::Options;

/// The subject of a policy's call, beyond the user and the options. Policies read it with functions of `host`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// The kernel or the Dask pool; `None` if the call is about a lab itself.
    pub child: Option<SubjectChild>,
    /// The user's present use, without the subject of the call.
    pub use_of_user: PresentUse,
    /// The user's use in past days.
    pub past_days: Arc<DaysOfUser>,
    /// The blueprints that apply to the lab.
    pub blueprint: Option<SubjectBlueprint>,
    /// The submission with which the user's server was last started, in a question for its spawn form.
    pub last_options: Options,
}

/// The blueprints of a lab that a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectBlueprint {
    /// The name of the chosen blueprint.
    pub chosen: Option<String>,
    /// The names of all its blueprints, in the order in which they are merged.
    pub consists_of: Vec<String>,
    /// The merged spec of the blueprints, as JSON.
    pub spec: String,
}

impl From<&Resolved> for SubjectBlueprint {
    fn from(resolved: &Resolved) -> Self {
        Self {
            chosen: resolved.chosen.as_ref().map(ToString::to_string),
            consists_of: resolved.consists_of.iter().map(ToString::to_string).collect(),
            // Serializing cannot fail, because all keys are strings and every number exists in JSON.
            spec: serde_json::to_string(&resolved.spec).unwrap_or_default(),
        }
    }
}

/// A kernel or a Dask pool that a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectChild {
    /// The kind of the child.
    pub kind: ChildKind,
    /// The name of the kernel spec, or that of the pool.
    pub name: String,
    /// The largest number of workers that the pool may have; 0 for a kernel.
    pub workers: u32,
}

/// The present use of one user, summed over all labs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PresentUse {
    /// Labs that are running, starting or stopping.
    pub labs: u32,
    /// Kernels that are running, starting or stopping.
    pub kernels: u32,
    /// Dask pools that are running, starting or stopping.
    pub dask_pools: u32,
    /// The largest number of workers that these pools may have, all together.
    pub dask_workers: u32,
    /// The limits of all pods together, in thousandths of a CPU. A missing limit counts as 0.
    pub cpu_millis: u64,
    /// The limits of all pods together, in bytes of memory. A missing limit counts as 0.
    pub memory_bytes: u64,
}
