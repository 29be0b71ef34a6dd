//! The shares that spawns take of their users' quotas, where no `ResourceQuota` of a namespace counts.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wasmspawner_core::names::Username;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::record::{LabDescription, ResourceAmount};
use wasmspawner_core::users::quota::{Quota, QuotaUsedUp, Share};

/// The share of its user's quota that each spawn takes. All shares of a user are counted under one lock, so that two
/// spawns that are decided at the same time do not both get the last CPU.
#[derive(Default)]
pub(crate) struct QuotaClaims {
    users: Mutex<HashMap<Username, HashMap<SpawnKey, Claim>>>,
}

struct Claim {
    share: Share,
    /// The user's quota; `None` for a spawn that was found after a restart.
    quota: Option<Quota>,
}

impl QuotaClaims {
    /// Takes a share for a spawn, in place of the one that it had. With a quota, fails if not enough is left. A spawn
    /// that is found after a restart has its share already.
    pub(crate) fn claim(
        &self,
        key: &SpawnKey,
        share: Share,
        quota: Option<&Quota>,
    ) -> Result<(), QuotaUsedUp> {
        let mut users = self.users();
        let claims = users.entry(key.lab.user.clone()).or_default();
        if let Some(quota) = quota {
            quota.allows_share(taken(claims, key), share)?;
        }
        claims.insert(key.clone(), Claim { share, quota: quota.cloned() });
        Ok(())
    }

    /// Changes the share of a spawn, within the quota that it was decided with.
    pub(crate) fn change(&self, key: &SpawnKey, share: Share) -> Result<(), QuotaUsedUp> {
        let mut users = self.users();
        let Some(claims) = users.get_mut(&key.lab.user) else { return Ok(()) };
        let taken = taken(claims, key);
        let Some(claim) = claims.get_mut(key) else { return Ok(()) };
        if let Some(quota) = &claim.quota {
            quota.allows_share(taken, share)?;
        }
        claim.share = share;
        Ok(())
    }

    /// Gives back the share of a spawn that is gone or has failed.
    pub(crate) fn release(&self, key: &SpawnKey) {
        let mut users = self.users();
        let Some(claims) = users.get_mut(&key.lab.user) else { return };
        claims.remove(key);
        if claims.is_empty() {
            users.remove(&key.lab.user);
        }
    }

    fn users(&self) -> MutexGuard<'_, HashMap<Username, HashMap<SpawnKey, Claim>>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sum of the shares that the user's other spawns have taken.
fn taken(claims: &HashMap<SpawnKey, Claim>, key: &SpawnKey) -> Share {
    let others = claims.iter().filter(|(other, _)| *other != key);
    others.fold(Share::default(), |sum, (_, claim)| sum.plus(claim.share))
}

/// The share of a spawn. A pool counts with its scheduler and all workers that it may have.
pub(crate) fn share_of(description: &LabDescription) -> Share {
    let limits = description.quotas.map(|quotas| quotas.limits).unwrap_or_default();
    let Some(pool) = &description.pool else { return share_of_pod(limits) };
    let scheduler = share_of_pod(pool.scheduler.unwrap_or(limits));
    if pool.groups.is_empty() {
        return scheduler.plus(share_of_pod(limits).times(pool.workers.maximum.into()));
    }
    pool.groups.iter().fold(scheduler, |sum, group| {
        // Until the policies have decided, a worker counts like the pool.
        let worker = share_of_pod(group.limits.unwrap_or(limits));
        sum.plus(worker.times(group.workers.maximum.into()))
    })
}

fn share_of_pod(limits: ResourceAmount) -> Share {
    Share { cpu_millis: limits.cpu.map_or(0, millis), memory_bytes: limits.memory.unwrap_or_default() }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of CPUs is positive, and no machine has 2^53 thousandths of one"
)]
fn millis(cpus: f64) -> u64 {
    (cpus * 1000.0).round() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wasmspawner_core::names::ChildName;
    use wasmspawner_core::names::lab::LabKey;

    use super::*;

    fn kernel(name: &str) -> SpawnKey {
        let lab = LabKey::default_server(Username::parse("ada").unwrap());
        SpawnKey::kernel(lab, ChildName::parse(name).unwrap())
    }

    fn cpus(number: u64) -> Share {
        Share { cpu_millis: number * 1000, memory_bytes: 0 }
    }

    #[test]
    fn two_hundred_claims_at_once_do_not_exceed_the_quota() {
        let claims = QuotaClaims::default();
        let quota = Quota { cpu_millis: Some(8000), ..Quota::default() };
        let granted: usize = std::thread::scope(|scope| {
            let each = (0..200).map(|number| {
                let (claims, quota) = (&claims, &quota);
                scope
                    .spawn(move || claims.claim(&kernel(&format!("k{number}")), cpus(2), Some(quota)).is_ok())
            });
            // All threads have begun before the first is joined.
            let each: Vec<_> = each.collect();
            each.into_iter().map(|claim| usize::from(claim.join().unwrap())).sum()
        });
        assert_eq!(granted, 4);
    }

    #[test]
    fn a_share_is_changed_within_the_quota_and_given_back() {
        let claims = QuotaClaims::default();
        let quota = Quota { cpu_millis: Some(8000), ..Quota::default() };
        claims.claim(&kernel("found"), cpus(6), None).unwrap();
        claims.claim(&kernel("a"), cpus(2), Some(&quota)).unwrap();
        assert!(claims.change(&kernel("a"), cpus(3)).is_err());
        assert!(claims.claim(&kernel("b"), cpus(1), Some(&quota)).is_err());
        claims.release(&kernel("found"));
        claims.change(&kernel("a"), cpus(7)).unwrap();
        claims.claim(&kernel("b"), cpus(1), Some(&quota)).unwrap();
        claims.claim(&kernel("a"), cpus(7), Some(&quota)).unwrap();
    }

    #[test]
    fn a_pool_counts_with_its_scheduler_and_all_workers_of_its_groups() {
        let limits = json!({ "cpu": 0.5, "memory": 3 });
        let share = |pool: serde_json::Value| {
            let quotas = json!({ "limits": &limits, "requests": {} });
            share_of(&serde_json::from_value(json!({ "quotas": quotas, "pool": pool })).unwrap())
        };
        let workers = |maximum: u32| json!({ "minimum": 0, "maximum": maximum });
        let alike = json!({ "keeper": "", "workers": workers(4) });
        assert_eq!(share(alike.clone()), Share { cpu_millis: 5 * 500, memory_bytes: 5 * 3 });
        let mut scheduled = alike;
        scheduled["scheduler"] = json!({ "cpu": 2.0, "memory": 7 });
        assert_eq!(share(scheduled), Share { cpu_millis: 2000 + 4 * 500, memory_bytes: 7 + 4 * 3 });
        // A worker counts like the pool until the policies have decided about its group.
        let mut groups = json!({ "keeper": "", "workers": workers(5), "groups": [
            { "name": "gpu", "workers": workers(3), "limits": { "cpu": 4.0, "memory": 100 } },
            { "name": "new", "workers": workers(2) },
        ]});
        let in_all = Share { cpu_millis: 500 + 3 * 4000 + 2 * 500, memory_bytes: 3 + 3 * 100 + 2 * 3 };
        assert_eq!(share(groups.clone()), in_all);
        // A number that does not fit counts as the largest, and does not begin at zero again.
        groups["groups"][0] =
            json!({ "name": "gpu", "workers": workers(u32::MAX), "limits": { "memory": u64::MAX } });
        assert_eq!(share(groups), Share { cpu_millis: 500 + 2 * 500, memory_bytes: u64::MAX });
    }
}
