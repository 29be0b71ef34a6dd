//! Limits of single calls and of all policies together: memory, computing time, slots.

pub(crate) mod machine_memory;
pub(crate) mod patience;
pub(crate) mod shared_memory;
pub(crate) mod slots;
pub(crate) mod time_slice;

use std::time::Duration;

use wasmspawner_core::config::CallLimits;
use wasmtime::ResourceLimiter;

use self::shared_memory::SharedMemory;

/// The limits of one call of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Computing time in milliseconds, 10 to 10000. Time spent waiting for a CPU does not count.
    pub deadline_ms: u64,
    /// The sum of all memories of the component in bytes, at most 128 MiB.
    pub memory_bytes: usize,
    /// The size of the answer in bytes.
    pub answer_bytes: usize,
    /// The maximum number of log lines.
    pub log_lines: u32,
    /// The maximum number of logged bytes.
    pub log_bytes: usize,
}

impl From<CallLimits> for Limits {
    fn from(limits: CallLimits) -> Self {
        Self {
            deadline_ms: limits.deadline_ms,
            memory_bytes: (limits.memory_mib as usize) << 20,
            answer_bytes: limits.answer_bytes,
            log_lines: 64,
            log_bytes: 16 << 10,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        CallLimits::default().into()
    }
}

impl Limits {
    /// Reduces the limits to those of the engine.
    pub(crate) fn within_the_engine(self) -> Self {
        Self {
            deadline_ms: self.deadline_ms.clamp(10, 10_000),
            memory_bytes: self.memory_bytes.min(MEMORY_SLOT),
            ..self
        }
    }

    /// Returns the longest time that a call may take, whether it computes or not. It is long, because a busy machine is
    /// not the policy's fault. It ends calls that neither compute nor return.
    pub(crate) fn wall_clock(&self) -> Duration {
        Duration::from_millis((self.deadline_ms * 10).max(1000))
    }
}

/// Returns a duration in whole milliseconds.
pub(crate) fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The number of bytes that are reserved for each memory of the pool.
pub(crate) const MEMORY_SLOT: usize = 128 << 20;

/// The error of a call that computed for longer than its limit.
#[derive(Debug, thiserror::Error)]
#[error("deadline exceeded")]
pub(crate) struct DeadlineExceeded;

/// The error of a call that requested more memory than its limit.
#[derive(Debug, thiserror::Error)]
#[error("memory budget exceeded")]
pub(crate) struct MemoryExceeded {
    pub(crate) asked: usize,
}

/// The error of a call for which no memory is left: the calls of policies have taken all that they share.
#[derive(Debug, thiserror::Error)]
#[error("no memory is left for calls of policies")]
pub(crate) struct NoSharedMemory;

/// The memory of one call, summed over all its memories and tables. A component may have dozens of them, so a limit for
/// each one would be useless.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    used: usize,
    limit: usize,
    shared: Option<SharedMemory>,
}

/// The maximum number of elements of a table; a Rust guest has a few hundred.
const TABLE_ELEMENTS: usize = 100_000;

/// The size of an element of a table, in bytes: that of a pointer.
const TABLE_ELEMENT: usize = size_of::<usize>();

impl MemoryBudget {
    /// Creates a budget of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: 0, limit, shared: None }
    }

    /// Counts the memory in `shared` as well.
    pub(crate) fn share(&mut self, shared: SharedMemory) {
        self.shared = Some(shared);
    }

    fn grow(&mut self, current: usize, desired: usize) -> wasmtime::Result<bool> {
        let asked = self.used.saturating_sub(current).saturating_add(desired);
        if asked > self.limit {
            return Err(MemoryExceeded { asked }.into());
        }
        if self.shared.as_mut().is_some_and(|shared| !shared.grow_to(asked)) {
            return Err(NoSharedMemory.into());
        }
        self.used = asked;
        Ok(true)
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        self.grow(current, desired)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > TABLE_ELEMENTS {
            return Ok(false);
        }
        self.grow(current * TABLE_ELEMENT, desired * TABLE_ELEMENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_limit_holds_for_the_sum_of_all_memories() {
        let mut budget = MemoryBudget::new(300);
        assert!(budget.memory_growing(0, 100, None).unwrap());
        assert!(budget.memory_growing(0, 100, None).unwrap());
        assert!(budget.memory_growing(100, 200, None).unwrap());
        let refused = budget.memory_growing(100, 101, None).unwrap_err();
        assert_eq!(refused.downcast_ref::<MemoryExceeded>().unwrap().asked, 301);
    }

    #[test]
    fn tables_are_a_part_of_the_memory() {
        let mut budget = MemoryBudget::new(300);
        assert!(budget.memory_growing(0, 200, None).unwrap());
        assert!(budget.table_growing(0, 12, None).unwrap());
        assert!(budget.table_growing(12, 13, None).is_err());
        assert!(!budget.table_growing(12, TABLE_ELEMENTS + 1, None).unwrap());
    }

    #[test]
    fn limits_are_clamped_to_those_of_the_engine() {
        let wild = Limits { deadline_ms: 0, memory_bytes: usize::MAX, ..Limits::default() };
        let tame = wild.within_the_engine();
        assert_eq!((tame.deadline_ms, tame.memory_bytes), (10, MEMORY_SLOT));
    }
}
