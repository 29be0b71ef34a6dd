//! The number of workers that a pool gets now: as many as it wants, within the limit of its user.

use super::WorkerRange;

/// The demand of one pool, and the number of workers that it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// The range of workers that the pool may have.
    pub range: WorkerRange,
    /// The number of workers that the pool's scheduler wants; `None` until it has reported one.
    pub wanted: Option<u32>,
    /// The number of workers that the pool is to have now.
    pub target: u32,
    /// The number of worker pods that exist. Pods that still have to end count against the limit, too.
    pub present: u32,
}

impl Demand {
    /// Creates the demand of a pool that has `present` workers, and whose scheduler has not reported yet.
    pub fn new(range: WorkerRange, present: u32) -> Self {
        Self { range, wanted: None, target: present, present }
    }

    /// Returns the number of workers that the pool takes of its user's limit.
    pub fn taken(&self) -> u32 {
        self.target.max(self.present)
    }

    /// Returns the number of workers that the pool would have without a limit.
    pub fn desired(&self) -> u32 {
        self.range.nearest(self.wanted.unwrap_or(self.target))
    }
}

/// Sets the targets of all pools of one user, who may have `allowed` workers altogether. A pool that wants fewer
/// workers gives them back as they end. The remaining workers are given to the pools that want more. No pool loses
/// workers that it still wants, even if the limit was lowered.
pub fn share<'a>(pools: impl IntoIterator<Item = &'a mut Demand>, allowed: u32) {
    let mut pools: Vec<&mut Demand> = pools.into_iter().collect();
    for pool in &mut pools {
        pool.target = pool.target.min(pool.desired());
    }
    let taken = pools.iter().fold(0_u32, |sum, pool| sum.saturating_add(pool.taken()));
    let mut left = allowed.saturating_sub(taken);
    for pool in pools {
        // A larger target takes nothing of the limit until it exceeds the number of workers that exist.
        let free = pool.taken().min(pool.desired());
        let more = (pool.desired() - free).min(left);
        pool.target = free + more;
        left -= more;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn demand(minimum: u32, maximum: u32, wanted: Option<u32>, target: u32) -> Demand {
        Demand { range: WorkerRange { minimum, maximum }, wanted, target, present: 0 }
    }

    #[test]
    fn pools_get_what_they_want_within_their_users_limit() {
        // Columns: the pools; the limit; their targets afterwards.
        for (mut pools, allowed, expected) in [
            (vec![demand(4, 4, None, 0)], 10, vec![4]),
            (vec![demand(4, 4, None, 0)], 3, vec![3]),
            (vec![demand(0, 8, None, 0)], 10, vec![0]),
            (vec![demand(0, 8, Some(5), 2)], 10, vec![5]),
            (vec![demand(2, 8, Some(0), 7)], 10, vec![2]),
            (vec![demand(0, 8, None, 3)], 10, vec![3]),
            (vec![demand(6, 6, None, 6), demand(6, 6, None, 0)], 8, vec![6, 2]),
            (vec![demand(2, 2, None, 6), demand(6, 6, None, 2)], 8, vec![2, 6]),
            (vec![demand(6, 6, None, 6)], 2, vec![6]),
        ] {
            share(&mut pools, allowed);
            assert_eq!(pools.iter().map(|pool| pool.target).collect::<Vec<_>>(), expected, "{pools:?}");
        }
    }

    #[test]
    fn workers_that_are_still_there_count_until_they_are_gone() {
        let leaving = Demand { present: 6, ..demand(0, 0, None, 6) };
        let mut pools = [leaving, demand(6, 6, None, 2)];
        share(&mut pools, 8);
        assert_eq!(pools.map(|pool| pool.target), [0, 2], "six are still there");
        pools[0].present = 3;
        share(&mut pools, 8);
        assert_eq!(pools[1].target, 5);
        // A pool that wants its workers back gets them without a further request.
        pools[0] = Demand { range: WorkerRange::fixed(4), ..pools[0] };
        share(&mut pools, 8);
        assert_eq!(pools.map(|pool| pool.target), [3, 5]);
    }

    proptest! {
        #[test]
        fn growth_never_exceeds_the_limit(
            pools in prop::collection::vec(
                (0..50_u32, 0..50_u32, prop::option::of(0..90_u32), 0..50_u32, 0..50_u32),
                0..6,
            ),
            allowed in 0..120_u32,
        ) {
            let mut pools: Vec<Demand> = pools
                .into_iter()
                .map(|(minimum, more, wanted, target, present)| Demand {
                    present,
                    ..demand(minimum, minimum + more, wanted, target)
                })
                .collect();
            let taken = |pools: &[Demand]| pools.iter().map(Demand::taken).sum::<u32>();
            let before = taken(&pools);
            share(&mut pools, allowed);
            let after = taken(&pools);
            prop_assert!(after <= allowed.max(before));
            prop_assert!(pools.iter().all(|pool| pool.target <= pool.desired()));
            let again = pools.clone();
            share(&mut pools, allowed);
            prop_assert_eq!(pools, again);
        }
    }
}
