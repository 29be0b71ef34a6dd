//! The groups of workers of a pool.

use std::collections::BTreeMap;

use super::WorkerRange;
use crate::names::WorkerGroupName;
use crate::values::options::Options;

/// Largest number of groups of a pool.
pub const MAX_GROUPS: usize = 8;

/// A group of workers as its client requests it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerGroup {
    /// The name of the group.
    pub name: WorkerGroupName,
    /// The range of the number of its workers.
    pub workers: WorkerRange,
    /// The options in which its workers differ from the pool.
    pub options: Options,
}

/// The range of one group. A pool whose workers are all alike has one group, without a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRange {
    /// The name of the group.
    pub group: Option<WorkerGroupName>,
    /// The range of the number of its workers.
    pub workers: WorkerRange,
}

impl GroupRange {
    /// Creates the only range of a pool whose workers are all alike.
    pub fn only(workers: WorkerRange) -> Self {
        Self { group: None, workers }
    }
}

/// A number of workers for each group.
pub type WorkerCounts = BTreeMap<Option<WorkerGroupName>, u32>;

/// A change of the number of workers, of a pool or of one of its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resize {
    /// The group; `None` for a pool whose workers are all alike.
    pub group: Option<WorkerGroupName>,
    /// The new range.
    pub workers: WorkerRange,
}
