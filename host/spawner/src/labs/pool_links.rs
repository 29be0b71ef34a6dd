//! The number of workers that each Dask pool is to have, and the connections on which the schedulers receive it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use wasmspawner_core::children::dask::{Demand, GroupRange, WorkerCounts, WorkerRange, share};
use wasmspawner_core::lifecycle::stage::ObservedPod;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::names::{Username, WorkerGroupName};
use wasmspawner_core::record::ImpossibleResize;

use crate::errors::SpawnError;

/// An order to a scheduler: the number of workers that each group of its pool is to have.
pub type WorkerOrder = Vec<GroupOrder>;

/// The number of workers that a group is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupOrder {
    /// The group; `None` if the workers of the pool are all alike.
    pub group: Option<WorkerGroupName>,
    /// The number of workers that the group may have.
    pub range: WorkerRange,
    /// The number of workers that the group is to have now.
    pub target: u32,
}

/// A scheduler's report about a group of its workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupReport {
    /// The group; `None` if the workers of the pool are all alike.
    pub group: Option<WorkerGroupName>,
    /// The number of workers that are connected to the scheduler.
    pub ready: u32,
    /// The number of workers that the scheduler wants.
    pub wanted: u32,
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
    /// The groups of workers. A pool whose workers are all alike has one, without a name.
    pub groups: Vec<GroupState>,
    /// The reason why the cluster refuses workers.
    pub trouble: Option<String>,
}

/// The known state of a group of workers, apart from their pods.
#[derive(Debug, Clone)]
pub struct GroupState {
    /// The group; `None` if the workers of the pool are all alike.
    pub group: Option<WorkerGroupName>,
    /// The workers that the group wants and gets.
    pub demand: Demand,
    /// The number of workers that are connected to the scheduler; `None` until the scheduler has reported it.
    pub ready: Option<u32>,
}

impl PoolState {
    /// Creates the state of a pool that has `present` workers, and whose scheduler has not reported anything yet.
    pub(crate) fn new(ranges: &[GroupRange], present: &WorkerCounts) -> Self {
        let state = |GroupRange { group, workers }: &GroupRange| {
            let present = present.get(group).copied().unwrap_or_default();
            GroupState { group: group.clone(), demand: Demand::new(*workers, present), ready: None }
        };
        Self { groups: ranges.iter().map(state).collect(), trouble: None }
    }

    /// The range of all groups together.
    pub fn range(&self) -> WorkerRange {
        self.groups.iter().map(|group| group.demand.range).sum()
    }

    /// The number of workers that the pool is to have now.
    pub fn target(&self) -> u32 {
        self.sum(|group| group.demand.target)
    }

    /// True if each group gets the workers that it wants.
    pub fn is_satisfied(&self) -> bool {
        self.groups.iter().all(|group| group.demand.target >= group.demand.desired())
    }

    /// The number of workers that are connected to the scheduler; `None` until the scheduler has reported it.
    pub fn ready(&self) -> Option<u32> {
        let reported = self.groups.iter().filter_map(|group| group.ready);
        reported.reduce(u32::saturating_add)
    }

    fn taken(&self) -> u32 {
        self.sum(|group| group.demand.taken())
    }

    fn sum(&self, number: impl Fn(&GroupState) -> u32) -> u32 {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(number(group)))
    }

    fn order(&self) -> WorkerOrder {
        let order = |GroupState { group, demand, .. }: &GroupState| GroupOrder {
            group: group.clone(),
            range: demand.range,
            target: demand.target,
        };
        self.groups.iter().map(order).collect()
    }
}

/// The error for a number of workers that the pool cannot have.
pub(crate) fn impossible_resize(problem: &ImpossibleResize) -> SpawnError {
    let field = match problem {
        ImpossibleResize::NoSuchGroup { .. } => "group",
        ImpossibleResize::TooMany { .. } => "workers",
    };
    SpawnError::InvalidPool { field, message: problem.to_string() }
}

/// Counts workers by their groups.
pub(crate) fn counts_of<'a>(workers: impl Iterator<Item = &'a Arc<ObservedPod>>) -> WorkerCounts {
    workers.fold(WorkerCounts::new(), |mut counts, pod| {
        *counts.entry(pod.group.clone()).or_default() += 1;
        counts
    })
}

/// The pools whose targets have changed.
pub(crate) type Changed = Vec<SpawnKey>;

impl Link {
    fn new(ranges: &[GroupRange], present: &WorkerCounts) -> Self {
        let state = PoolState::new(ranges, present);
        Self { order: watch::Sender::new(state.order()), state }
    }
}

impl PoolLinks {
    /// Adds a pool that has `present` workers, in place of an earlier pool with the same key. While the service does
    /// not know all pools yet, no pool is `allowed` to grow.
    pub(crate) fn add(
        &self,
        key: &SpawnKey,
        ranges: &[GroupRange],
        present: &WorkerCounts,
        allowed: u32,
    ) -> Changed {
        self.change(key, allowed, |pools| {
            pools.insert(key.clone(), Link::new(ranges, present));
        })
    }

    /// Forgets a pool that is gone. Other pools of its user may grow.
    pub(crate) fn forget(&self, key: &SpawnKey, allowed: u32) -> Changed {
        self.change(key, allowed, |pools| {
            pools.remove(key);
        })
    }

    /// Changes the number of workers that each group of a pool may have.
    pub(crate) fn resize(&self, key: &SpawnKey, ranges: &[GroupRange], allowed: u32) -> Changed {
        self.change_groups(key, allowed, |groups| {
            for group in groups {
                if let Some(range) = ranges.iter().find(|range| range.group == group.group) {
                    group.demand.range = range.workers;
                }
            }
        })
    }

    /// Ends a pool: no group is to have a worker any more.
    pub(crate) fn end(&self, key: &SpawnKey, allowed: u32) -> Changed {
        self.change_groups(key, allowed, |groups| {
            for group in groups {
                group.demand.range = WorkerRange::fixed(0);
            }
        })
    }

    /// Notes a scheduler's report about the groups that the pool has.
    pub(crate) fn report(&self, key: &SpawnKey, reports: &[GroupReport], allowed: u32) -> Changed {
        self.change_groups(key, allowed, |groups| {
            for group in groups {
                if let Some(report) = reports.iter().find(|report| report.group == group.group) {
                    (group.ready, group.demand.wanted) = (Some(report.ready), Some(report.wanted));
                }
            }
        })
    }

    /// Notes the numbers of worker pods of a pool.
    pub(crate) fn note_present(&self, key: &SpawnKey, present: &WorkerCounts, allowed: u32) -> Changed {
        let of = |group: &GroupState| present.get(&group.group).copied().unwrap_or_default();
        let same = |link: &Link| link.state.groups.iter().all(|group| group.demand.present == of(group));
        if self.users().get(&key.lab.user).and_then(|pools| pools.get(key)).is_none_or(same) {
            return Changed::new();
        }
        self.change_groups(key, allowed, |groups| {
            for group in groups {
                group.demand.present = of(group);
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
        others.fold(0, |sum, (_, link)| sum.saturating_add(link.state.taken()))
    }

    /// Counts the workers that all pools are to have, and those that are connected to their schedulers.
    pub(crate) fn count_workers(&self) -> (usize, usize) {
        let users = self.users();
        let counts = users
            .values()
            .flatten()
            .map(|(_, link)| (link.state.target() as usize, link.state.ready().unwrap_or_default() as usize));
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
        let order = link.order.borrow().clone();
        link.order = watch::Sender::new(order);
        let mut orders = link.order.subscribe();
        // The first order is delivered at once.
        orders.mark_changed();
        Ok(orders)
    }

    fn change_groups(&self, key: &SpawnKey, allowed: u32, change: impl FnOnce(&mut [GroupState])) -> Changed {
        self.change(key, allowed, |pools| {
            if let Some(link) = pools.get_mut(key) {
                change(&mut link.state.groups);
            }
        })
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
    let groups = pools.values_mut().flat_map(|link| &mut link.state.groups);
    share(groups.map(|group| &mut group.demand), allowed);
    pools.iter().filter(|(_, link)| link.publish()).map(|(key, _)| key.clone()).collect()
}

impl Link {
    /// Sends the present order to the scheduler. Returns true if it differs from the one before.
    fn publish(&self) -> bool {
        let order = self.state.order();
        self.order.send_if_modified(|before| {
            let is_new = *before != order;
            *before = order;
            is_new
        })
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
        links.get(key).unwrap().target()
    }

    /// Pools whose workers are all alike.
    impl PoolLinks {
        fn add_alike(&self, key: &SpawnKey, range: WorkerRange, present: u32, allowed: u32) -> Changed {
            self.add(key, &[GroupRange::only(range)], &WorkerCounts::from([(None, present)]), allowed)
        }

        fn resize_alike(&self, key: &SpawnKey, range: WorkerRange, allowed: u32) -> Changed {
            self.resize(key, &[GroupRange::only(range)], allowed)
        }

        fn report_alike(&self, key: &SpawnKey, ready: u32, wanted: u32, allowed: u32) -> Changed {
            self.report(key, &[GroupReport { group: None, ready, wanted }], allowed)
        }
    }

    fn group(name: &str, minimum: u32, maximum: u32) -> GroupRange {
        let workers = WorkerRange { minimum, maximum };
        GroupRange { group: Some(WorkerGroupName::parse(name).unwrap()), workers }
    }

    fn targets(links: &PoolLinks, key: &SpawnKey) -> Vec<u32> {
        links.get(key).unwrap().groups.iter().map(|group| group.demand.target).collect()
    }

    #[test]
    fn the_groups_of_a_pool_share_their_users_limit_with_each_other_and_with_other_pools() {
        let (links, a, b) = (PoolLinks::default(), key("ada", "a"), key("ada", "b"));
        let (cpu, gpu) = (group("cpu", 2, 2), group("gpu", 0, 8));
        links.add(&a, &[cpu.clone(), gpu.clone()], &WorkerCounts::new(), 8);
        assert_eq!(targets(&links, &a), [2, 0]);
        let mut orders = links.connect(&a, 9).unwrap();
        let report =
            |range: &GroupRange, wanted| GroupReport { group: range.group.clone(), ready: 1, wanted };
        let unknown = GroupReport { group: None, ready: 9, wanted: 9 };
        links.report(&a, &[report(&gpu, 9), unknown], 8);
        assert_eq!(targets(&links, &a), [2, 6], "eight in all");
        assert_eq!(links.get(&a).unwrap().ready(), Some(1));
        assert!(!links.get(&a).unwrap().is_satisfied());
        assert_eq!(orders.borrow_and_update().iter().map(|order| order.target).collect::<Vec<_>>(), [2, 6]);
        links.add_alike(&b, WorkerRange::fixed(4), 0, 8);
        assert_eq!((target(&links, &b), links.workers_of_others(&b)), (0, 8));
        // One group is resized, and the other stays as it is.
        links.report(&a, &[report(&gpu, 1)], 8);
        assert_eq!((targets(&links, &a), target(&links, &b)), (vec![2, 1], 4));
        links.resize(&a, &[group("cpu", 1, 1), gpu.clone()], 8);
        assert_eq!(targets(&links, &a), [1, 1]);
        // Pods that still end count, each in its group.
        let present = WorkerCounts::from([(cpu.group, 1), (gpu.group, 5)]);
        links.note_present(&a, &present, 8);
        links.resize_alike(&b, WorkerRange::fixed(8), 8);
        assert_eq!((links.workers_of_others(&b), target(&links, &b)), (6, 4), "no pool loses workers");
        links.end(&a, 8);
        assert_eq!(targets(&links, &a), [0, 0]);
    }

    #[test]
    fn the_pools_of_one_user_share_a_limit_and_those_of_others_do_not() {
        let links = PoolLinks::default();
        let (a, b, other) = (key("ada", "a"), key("ada", "b"), key("bob", "a"));
        assert_eq!(links.add_alike(&a, WorkerRange::fixed(6), 0, 8), vec![a.clone()]);
        links.add_alike(&b, WorkerRange::fixed(6), 0, 8);
        links.add_alike(&other, WorkerRange::fixed(8), 0, 8);
        assert_eq!([&a, &b, &other].map(|key| target(&links, key)), [6, 2, 8]);
        assert_eq!(links.workers_of_others(&b), 6);
        assert_eq!(links.resize_alike(&a, WorkerRange::fixed(3), 8), vec![a.clone(), b.clone()]);
        assert_eq!([&a, &b].map(|key| target(&links, key)), [3, 5]);
        assert_eq!(links.forget(&a, 8), vec![b.clone()]);
        assert_eq!(target(&links, &b), 6);
        assert!(links.report_alike(&a, 1, 1, 8).is_empty(), "it is gone");
    }

    #[test]
    fn a_scheduler_is_told_its_order_at_once_and_at_each_change() {
        let (links, a) = (PoolLinks::default(), key("ada", "a"));
        assert_eq!(links.connect(&a, 9).unwrap_err(), NoOrders::Ending);
        let range = WorkerRange { minimum: 1, maximum: 4 };
        links.add_alike(&a, range, 0, 8);
        let mut orders = links.connect(&a, 9).unwrap();
        assert!(orders.has_changed().unwrap());
        assert_eq!(*orders.borrow_and_update(), vec![GroupOrder { group: None, range, target: 1 }]);
        links.report_alike(&a, 0, 9, 8);
        assert_eq!(orders.borrow_and_update()[0].target, 4);
        links.report_alike(&a, 1, 9, 8);
        assert!(!orders.has_changed().unwrap(), "how many are ready is no order");
        assert_eq!(links.get(&a).unwrap().ready(), Some(1));
        let second = links.connect(&a, 9).unwrap();
        assert!(orders.has_changed().is_err(), "one pool has one connection");
        links.forget(&a, 8);
        assert!(second.has_changed().is_err(), "the connection ends");
        links.add_alike(&a, range, 0, 8);
        links.add_alike(&key("bob", "b"), range, 0, 8);
        let _of_bob = links.connect(&key("bob", "b"), 1).unwrap();
        assert_eq!(links.connect(&a, 1).unwrap_err(), NoOrders::TooMany, "others need connections too");
    }

    #[test]
    fn pools_that_are_found_after_a_restart_do_not_grow_into_each_other() {
        let (links, a, b) = (PoolLinks::default(), key("ada", "a"), key("ada", "b"));
        links.add_alike(&a, WorkerRange::fixed(20), 16, 0);
        links.add_alike(&b, WorkerRange::fixed(16), 16, 0);
        links.share_all(32);
        assert_eq!([&a, &b].map(|key| target(&links, key)), [16, 16]);
        assert_eq!(links.share_all(40), vec![a.clone()], "more is allowed");
        assert_eq!(target(&links, &a), 20);
        // A pool that ends gives its workers back as they disappear.
        links.resize_alike(&b, WorkerRange::fixed(0), 32);
        links.resize_alike(&a, WorkerRange::fixed(32), 32);
        assert_eq!(target(&links, &a), 20);
        assert_eq!(links.note_present(&b, &WorkerCounts::from([(None, 4)]), 32), vec![a.clone()]);
        assert_eq!(target(&links, &a), 28);
    }

    #[test]
    fn two_hundred_reports_at_once_stay_within_the_limit() {
        let links = PoolLinks::default();
        let range = WorkerRange { minimum: 0, maximum: 100 };
        let pools: Vec<SpawnKey> = (0..20).map(|number| key("ada", &number.to_string())).collect();
        for pool in &pools {
            links.add_alike(pool, range, 0, 32);
        }
        std::thread::scope(|scope| {
            for round in 0..10 {
                for pool in &pools {
                    let links = &links;
                    scope.spawn(move || links.report_alike(pool, 0, 100 - round, 32));
                }
            }
        });
        assert_eq!(pools.iter().map(|pool| target(&links, pool)).sum::<u32>(), 32);
    }
}
