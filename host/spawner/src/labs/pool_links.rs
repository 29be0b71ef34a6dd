//! The number of workers that each Dask pool is to have, and the connections on which the schedulers receive it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use wasmspawner_core::children::dask::{Demand, WorkerRange, share};
use wasmspawner_core::names::Username;
use wasmspawner_core::names::spawn_key::SpawnKey;

/// An order to a scheduler: the number of workers that its pool is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerOrder {
    /// The number of workers that the pool may have.
    pub range: WorkerRange,
    /// The number of workers that the pool is to have now.
    pub target: u32,
}

/// The reason why a scheduler gets no orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoOrders {
    /// The pool is ending, or gone.
    Ending,
    /// The pods of other pools hold as many connections as they may.
    TooMany,
}

/// The pools of all users. After a restart of the service each scheduler connects again and reports anew.
///
/// All pools of a user are changed under one lock, so that together they never grow above the user's limit.
#[derive(Default)]
pub(crate) struct PoolLinks {
    users: Mutex<HashMap<Username, BTreeMap<SpawnKey, Link>>>,
}

struct Link {
    state: PoolState,
    order: watch::Sender<WorkerOrder>,
}

/// The known state of a pool, apart from its pods.
#[derive(Debug, Clone)]
pub struct PoolState {
    /// The workers that the pool wants and gets.
    pub demand: Demand,
    /// The number of workers that are connected to the scheduler; `None` until the scheduler has reported it.
    pub ready: Option<u32>,
    /// The reason why the cluster refuses workers.
    pub trouble: Option<String>,
}

impl PoolState {
    /// Creates the state of a pool that has `present` workers, and whose scheduler has not reported anything yet.
    pub(crate) fn new(range: WorkerRange, present: u32) -> Self {
        Self { demand: Demand::new(range, present), ready: None, trouble: None }
    }
}

/// The pools whose targets have changed.
pub(crate) type Changed = Vec<SpawnKey>;

impl Link {
    fn new(range: WorkerRange, present: u32) -> Self {
        let order = watch::Sender::new(WorkerOrder { range, target: present });
        Self { state: PoolState::new(range, present), order }
    }
}

impl PoolLinks {
    /// Adds a pool that has `present` workers, in place of an earlier pool with the same key. While the service does
    /// not know all pools yet, no pool is `allowed` to grow.
    pub(crate) fn add(&self, key: &SpawnKey, range: WorkerRange, present: u32, allowed: u32) -> Changed {
        self.change(key, allowed, |pools| {
            pools.insert(key.clone(), Link::new(range, present));
        })
    }

    /// Forgets a pool that is gone. Other pools of its user may grow.
    pub(crate) fn forget(&self, key: &SpawnKey, allowed: u32) -> Changed {
        self.change(key, allowed, |pools| {
            pools.remove(key);
        })
    }

    /// Changes the number of workers that a pool may have.
    pub(crate) fn resize(&self, key: &SpawnKey, range: WorkerRange, allowed: u32) -> Changed {
        self.change(key, allowed, |pools| {
            if let Some(link) = pools.get_mut(key) {
                link.state.demand.range = range;
            }
        })
    }

    /// Notes a scheduler's report: the number of workers connected to it, and the number that it wants.
    pub(crate) fn report(&self, key: &SpawnKey, ready: u32, wanted: u32, allowed: u32) -> Changed {
        self.change(key, allowed, |pools| {
            if let Some(link) = pools.get_mut(key) {
                (link.state.ready, link.state.demand.wanted) = (Some(ready), Some(wanted));
            }
        })
    }

    /// Notes the number of worker pods of a pool.
    pub(crate) fn note_present(&self, key: &SpawnKey, present: u32, allowed: u32) -> Changed {
        let same = |link: &Link| link.state.demand.present == present;
        if self.users().get(&key.lab.user).and_then(|pools| pools.get(key)).is_none_or(same) {
            return Changed::new();
        }
        self.change(key, allowed, |pools| {
            if let Some(link) = pools.get_mut(key) {
                link.state.demand.present = present;
            }
        })
    }

    /// Distributes the workers of each user again, because another number is allowed.
    pub(crate) fn share_all(&self, allowed: u32) -> Changed {
        let mut users = self.users();
        users.values_mut().flat_map(|pools| share_among(pools, allowed)).collect()
    }

    /// Notes the reason why the cluster refuses workers; `None` if it does not.
    pub(crate) fn note_trouble(&self, key: &SpawnKey, trouble: Option<String>) {
        let mut users = self.users();
        if let Some(link) = users.get_mut(&key.lab.user).and_then(|pools| pools.get_mut(key)) {
            link.state.trouble = trouble;
        }
    }

    /// The known state of a pool.
    pub(crate) fn get(&self, key: &SpawnKey) -> Option<PoolState> {
        Some(self.users().get(&key.lab.user)?.get(key)?.state.clone())
    }

    /// The number of workers that the other pools of the user have or are to have, all together.
    pub(crate) fn workers_of_others(&self, key: &SpawnKey) -> u32 {
        let users = self.users();
        let others = users.get(&key.lab.user).into_iter().flatten().filter(|(other, _)| *other != key);
        others.fold(0, |sum, (_, link)| sum.saturating_add(link.state.demand.taken()))
    }

    /// Counts the workers that all pools are to have, and those that are connected to their schedulers.
    pub(crate) fn count_workers(&self) -> (usize, usize) {
        let users = self.users();
        let counts = users.values().flatten().map(|(_, link)| {
            (link.state.demand.target as usize, link.state.ready.unwrap_or_default() as usize)
        });
        counts.fold((0, 0), |(wanted, ready), (more, connected)| (wanted + more, ready + connected))
    }

    /// Connects a scheduler, and returns the orders for it. The connection replaces an earlier one, so that one pool
    /// holds one.
    pub(crate) fn connect(
        &self,
        key: &SpawnKey,
        most: usize,
    ) -> Result<watch::Receiver<WorkerOrder>, NoOrders> {
        let mut users = self.users();
        let links = users.values().flatten();
        let others = links.filter(|(other, link)| *other != key && !link.order.is_closed()).count();
        let link =
            users.get_mut(&key.lab.user).and_then(|pools| pools.get_mut(key)).ok_or(NoOrders::Ending)?;
        if others >= most {
            return Err(NoOrders::TooMany);
        }
        let order = *link.order.borrow();
        link.order = watch::Sender::new(order);
        let mut orders = link.order.subscribe();
        // The first order is delivered at once.
        orders.mark_changed();
        Ok(orders)
    }

    fn change(
        &self,
        key: &SpawnKey,
        allowed: u32,
        change: impl FnOnce(&mut BTreeMap<SpawnKey, Link>),
    ) -> Changed {
        let mut users = self.users();
        let pools = users.entry(key.lab.user.clone()).or_default();
        change(pools);
        let changed = share_among(pools, allowed);
        if pools.is_empty() {
            users.remove(&key.lab.user);
        }
        changed
    }

    fn users(&self) -> MutexGuard<'_, HashMap<Username, BTreeMap<SpawnKey, Link>>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn share_among(pools: &mut BTreeMap<SpawnKey, Link>, allowed: u32) -> Changed {
    share(pools.values_mut().map(|link| &mut link.state.demand), allowed);
    pools.iter().filter(|(_, link)| link.publish()).map(|(key, _)| key.clone()).collect()
}

impl Link {
    /// Sends the present order to the scheduler. Returns true if it differs from the one before.
    fn publish(&self) -> bool {
        let Demand { range, target, .. } = self.state.demand;
        let order = WorkerOrder { range, target };
        self.order.send_if_modified(|before| std::mem::replace(before, order) != order)
    }
}

#[cfg(test)]
mod tests {
    use wasmspawner_core::names::ChildName;
    use wasmspawner_core::names::lab::LabKey;

    use super::*;

    fn key(user: &str, pool: &str) -> SpawnKey {
        let lab = LabKey::default_server(Username::parse(user).unwrap());
        SpawnKey::dask_pool(lab, ChildName::parse(pool).unwrap())
    }

    fn target(links: &PoolLinks, key: &SpawnKey) -> u32 {
        links.get(key).unwrap().demand.target
    }

    #[test]
    fn the_pools_of_one_user_share_a_limit_and_those_of_others_do_not() {
        let links = PoolLinks::default();
        let (a, b, other) = (key("ada", "a"), key("ada", "b"), key("bob", "a"));
        assert_eq!(links.add(&a, WorkerRange::fixed(6), 0, 8), vec![a.clone()]);
        links.add(&b, WorkerRange::fixed(6), 0, 8);
        links.add(&other, WorkerRange::fixed(8), 0, 8);
        assert_eq!([&a, &b, &other].map(|key| target(&links, key)), [6, 2, 8]);
        assert_eq!(links.workers_of_others(&b), 6);
        assert_eq!(links.resize(&a, WorkerRange::fixed(3), 8), vec![a.clone(), b.clone()]);
        assert_eq!([&a, &b].map(|key| target(&links, key)), [3, 5]);
        assert_eq!(links.forget(&a, 8), vec![b.clone()]);
        assert_eq!(target(&links, &b), 6);
        assert!(links.report(&a, 1, 1, 8).is_empty(), "it is gone");
    }

    #[test]
    fn a_scheduler_is_told_its_order_at_once_and_at_each_change() {
        let (links, a) = (PoolLinks::default(), key("ada", "a"));
        assert_eq!(links.connect(&a, 9).unwrap_err(), NoOrders::Ending);
        let range = WorkerRange { minimum: 1, maximum: 4 };
        links.add(&a, range, 0, 8);
        let mut orders = links.connect(&a, 9).unwrap();
        assert!(orders.has_changed().unwrap());
        assert_eq!(*orders.borrow_and_update(), WorkerOrder { range, target: 1 });
        links.report(&a, 0, 9, 8);
        assert_eq!(orders.borrow_and_update().target, 4);
        links.report(&a, 1, 9, 8);
        assert!(!orders.has_changed().unwrap(), "how many are ready is no order");
        assert_eq!(links.get(&a).unwrap().ready, Some(1));
        let second = links.connect(&a, 9).unwrap();
        assert!(orders.has_changed().is_err(), "one pool has one connection");
        links.forget(&a, 8);
        assert!(second.has_changed().is_err(), "the connection ends");
        links.add(&a, range, 0, 8);
        links.add(&key("bob", "b"), range, 0, 8);
        let _of_bob = links.connect(&key("bob", "b"), 1).unwrap();
        assert_eq!(links.connect(&a, 1).unwrap_err(), NoOrders::TooMany, "others need connections too");
    }

    #[test]
    fn pools_that_are_found_after_a_restart_do_not_grow_into_each_other() {
        let (links, a, b) = (PoolLinks::default(), key("ada", "a"), key("ada", "b"));
        links.add(&a, WorkerRange::fixed(20), 16, 0);
        links.add(&b, WorkerRange::fixed(16), 16, 0);
        links.share_all(32);
        assert_eq!([&a, &b].map(|key| target(&links, key)), [16, 16]);
        assert_eq!(links.share_all(40), vec![a.clone()], "more is allowed");
        assert_eq!(target(&links, &a), 20);
        // A pool that ends gives its workers back as they disappear.
        links.resize(&b, WorkerRange::fixed(0), 32);
        links.resize(&a, WorkerRange::fixed(32), 32);
        assert_eq!(target(&links, &a), 20);
        assert_eq!(links.note_present(&b, 4, 32), vec![a.clone()]);
        assert_eq!(target(&links, &a), 28);
    }

    #[test]
    fn two_hundred_reports_at_once_stay_within_the_limit() {
        let links = PoolLinks::default();
        let range = WorkerRange { minimum: 0, maximum: 100 };
        let pools: Vec<SpawnKey> = (0..20).map(|number| key("ada", &number.to_string())).collect();
        for pool in &pools {
            links.add(pool, range, 0, 32);
        }
        std::thread::scope(|scope| {
            for round in 0..10 {
                for pool in &pools {
                    let links = &links;
                    scope.spawn(move || links.report(pool, 0, 100 - round, 32));
                }
            }
        });
        assert_eq!(pools.iter().map(|pool| target(&links, pool)).sum::<u32>(), 32);
    }
}
