//! The part of a user's quota that something takes.

use super::{Quantity, Quota};

/// CPU and memory that something may use. A missing limit counts as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// CPU in thousandths of a CPU.
    pub cpu_millis: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

impl Share {
    /// Returns the share of this number of pods that are all alike.
    #[must_use]
    pub fn times(self, pods: u64) -> Self {
        Self {
            cpu_millis: self.cpu_millis.saturating_mul(pods),
            memory_bytes: self.memory_bytes.saturating_mul(pods),
        }
    }

    /// Returns the sum of both shares.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu_millis: self.cpu_millis.saturating_add(other.cpu_millis),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
        }
    }
}

/// The error for a share that is larger than the rest of the quota.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Your quota of {what} is {limit}; you have {taken} already, and this would take {own} more. Stop something first, or \
     choose a smaller size"
)]
pub struct QuotaUsedUp {
    what: &'static str,
    limit: Quantity,
    taken: Quantity,
    own: Quantity,
}

impl Quota {
    /// Returns an error if `own` is larger than the rest of the quota after `taken`.
    pub fn allows_share(&self, taken: Share, own: Share) -> Result<(), QuotaUsedUp> {
        let check = |what, limit: Option<u64>, taken: u64, own: u64, unit: fn(u64) -> Quantity| match limit {
            Some(limit) if own > 0 && taken.saturating_add(own) > limit => {
                Err(QuotaUsedUp { what, limit: unit(limit), taken: unit(taken), own: unit(own) })
            }
            _ => Ok(()),
        };
        check("CPUs", self.cpu_millis, taken.cpu_millis, own.cpu_millis, Quantity::millis)?;
        check("memory", self.memory_bytes, taken.memory_bytes, own.memory_bytes, Quantity::bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_quota_may_be_taken_and_not_more() {
        let quota = Quota { cpu_millis: Some(8000), ..Quota::default() };
        let share = |cpu_millis, memory_bytes| Share { cpu_millis, memory_bytes };
        assert_eq!(quota.allows_share(share(4000, 1), share(2000, 1).times(2)), Ok(()));
        let refused = quota.allows_share(share(4000, 0).plus(share(2000, 0)), share(2500, 0)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "Your quota of CPUs is 8; you have 6 already, and this would take 2500m more. Stop something first, or choose \
             a smaller size"
        );
        assert_eq!(
            quota.allows_share(share(9000, 0), share(0, 5)),
            Ok(()),
            "what has no limit counts as nothing"
        );
        assert!(quota.allows_share(share(u64::MAX, 0), share(u64::MAX, 0).times(2)).is_err());
    }
}
