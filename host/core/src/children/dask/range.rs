//! The range of the number of workers of a pool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest number of workers that a pool can request. Sites and quotas allow fewer.
pub const MAX_WORKERS: u32 = 10_000;

/// How many workers a pool has: from `minimum` to `maximum`, as its scheduler needs them. If both are the same, the pool
/// has a fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerRange {
    /// Least number of workers.
    pub minimum: u32,
    /// Largest number of workers.
    pub maximum: u32,
}

impl std::iter::Sum for WorkerRange {
    fn sum<I: Iterator<Item = Self>>(ranges: I) -> Self {
        ranges.fold(Self::fixed(0), |sum, range| Self {
            minimum: sum.minimum.saturating_add(range.minimum),
            maximum: sum.maximum.saturating_add(range.maximum),
        })
    }
}

impl WorkerRange {
    /// Creates a range with a fixed number of workers.
    pub fn fixed(workers: u32) -> Self {
        Self { minimum: workers, maximum: workers }
    }

    /// Returns true if the pool's scheduler decides on the number of workers.
    pub fn is_adaptive(self) -> bool {
        self.minimum < self.maximum
    }

    /// Returns the number within the range that is nearest to `workers`.
    pub fn nearest(self, workers: u32) -> u32 {
        workers.min(self.maximum).max(self.minimum)
    }

    /// Returns the range for a site on which every pool has to be adaptive: the same maximum, without a minimum.
    #[must_use]
    pub fn without_minimum(self) -> Self {
        Self { minimum: 0, ..self }
    }
}
