use serde::{Deserialize, Serialize};

use super::Quota;

/// What an identity provider allows a user, whatever the policies decide (Gafaelfawr: `quota.notebook`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserQuota {
    /// CPU of all the user's labs in thousandths of a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Memory of all the user's labs in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Whether the user may start labs at all.
    pub spawn: bool,
}

/// The error for a user whom the identity provider does not allow to start labs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "Your account may not start labs (its quota at the identity provider says so); ask your site's support"
)]
pub struct SpawningForbidden;

impl UserQuota {
    /// Converts amounts in CPUs and GiB to a quota. Fractions of a thousandth or a byte are dropped, and an amount
    /// below zero becomes zero.
    pub fn of_cpus_and_gib(cpus: Option<f64>, gib: Option<f64>, spawn: bool) -> Self {
        Self {
            cpu_millis: cpus.map(|cpus| whole(cpus * 1000.0)),
            memory_bytes: gib.map(|gib| whole(gib * GIB)),
            spawn,
        }
    }

    /// Returns the limits, which apply in addition to those of the policies.
    pub fn limits(self) -> Quota {
        Quota { cpu_millis: self.cpu_millis, memory_bytes: self.memory_bytes, ..Quota::default() }
    }

    /// Returns an error if the user may not start labs.
    pub fn allows_spawning(self) -> Result<(), SpawningForbidden> {
        if self.spawn { Ok(()) } else { Err(SpawningForbidden) }
    }
}

const GIB: f64 = 1_073_741_824.0;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion gives 0 for what is below it and the largest number for what is above it, as it should"
)]
fn whole(amount: f64) -> u64 {
    amount as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_in_cpus_and_gib() {
        for (cpus, gib, millis, bytes) in [
            (Some(9.0), Some(27.0), Some(9000), Some(27 << 30)),
            (Some(0.5), Some(0.5), Some(500), Some(1 << 29)),
            (Some(0.0), None, Some(0), None),
            (Some(-1.0), Some(1e300), Some(0), Some(u64::MAX)),
        ] {
            let quota = UserQuota::of_cpus_and_gib(cpus, gib, true).limits();
            assert_eq!((quota.cpu_millis, quota.memory_bytes), (millis, bytes), "{cpus:?} {gib:?}");
        }
    }

    #[test]
    fn a_user_may_start_labs_unless_the_quota_forbids_it() {
        assert_eq!(UserQuota::of_cpus_and_gib(None, None, true).allows_spawning(), Ok(()));
        assert_eq!(
            UserQuota::of_cpus_and_gib(Some(9.0), None, false).allows_spawning(),
            Err(SpawningForbidden)
        );
    }
}
