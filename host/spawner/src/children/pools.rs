//! Dask pools: their numbers of workers, and the orders for their schedulers.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;
use wasmspawner_core::children::dask::{Resize, WorkerCounts};
use wasmspawner_core::lifecycle::stage::{self, PodLife, StagePolicy};
use wasmspawner_core::lifecycle::{LabStatus, Refusal};
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::spawn_key::{ChildKind, SpawnKey, SpawnKind};
use wasmspawner_core::policy::spawn::ChildRequest;
use wasmspawner_core::policy::{Action, AuthorizeRequest, User};
use wasmspawner_core::record::PoolDescription;
use wasmspawner_core::users::identity::Identity;

use crate::decide::permission::authorize;
use crate::errors::SpawnError;
use crate::labs::Labs;
use crate::labs::message::Message;
use crate::labs::pool_links::{
    Changed, GroupReport, GroupState, NoOrders, PoolState, WorkerOrder, counts_of, impossible_resize,
};
use crate::published::snapshot::LabSnapshot;

/// A Dask pool at one moment.
#[derive(Debug, Clone)]
pub struct PoolSnapshot {
    /// The scheduler's pod and its stages, in the same form as those of a lab.
    pub spawn: Arc<LabSnapshot>,
    /// The pool that the client has asked for.
    pub description: PoolDescription,
    /// The workers that the pool wants and gets, and the reports of its scheduler.
    pub state: PoolState,
    /// The number of worker pods, of each group.
    pub pods: WorkerCounts,
    /// The name of the scheduler's pod.
    pub pod: Option<String>,
    /// The reason why workers are missing.
    pub waiting: Option<String>,
    /// The reason why the pool cannot have more workers, if it would have more without a limit.
    pub limited: Option<String>,
}

impl PoolSnapshot {
    /// The address of the scheduler's pod, once the scheduler listens.
    pub fn address(&self) -> Option<&str> {
        let listens = self.spawn.status == LabStatus::Running && self.state.ready().is_some();
        self.spawn.address.as_deref().filter(|_| listens)
    }
}

/// The Dask pools that labs have started. Clones share them.
#[derive(Clone)]
pub struct Pools(Labs);

impl Pools {
    /// Creates the view of these labs' pools.
    pub fn new(labs: Labs) -> Self {
        Self(labs)
    }

    /// Fails if the record of this pool cannot be read: it may run.
    pub fn require_readable(&self, key: &SpawnKey) -> Result<(), SpawnError> {
        self.0.require_readable(key)
    }

    /// Refuses a pool that cannot begin to start now, whatever the policies say about it.
    pub fn can_start(&self, key: &SpawnKey) -> Result<(), SpawnError> {
        self.0.can_spawn(key)
    }

    /// Starts a pool of a running lab. Returns when the start has begun; the events report the rest.
    pub async fn start(&self, request: ChildRequest) -> Result<(), SpawnError> {
        self.0.start_child(request).await
    }

    /// The keys of a lab's Dask pools, sorted by their names. Fails while another process may know others.
    pub fn of_lab(&self, lab: &LabKey) -> Result<Vec<SpawnKey>, SpawnError> {
        self.0.require_certain()?;
        Ok(self.0.children_of_kind(lab, ChildKind::DaskPool))
    }

    /// The Dask pool with this key.
    pub fn get(&self, key: &SpawnKey) -> Option<PoolSnapshot> {
        let view = self.0.view(key)?;
        let spawn = view.snapshot?;
        let description = spawn.about.description.pool.clone()?;
        let state = self.0.pool_links().get(key);
        let state = state.unwrap_or_else(|| PoolState::new(&description.ranges(), &WorkerCounts::new()));
        let workers = view.place.as_ref().zip(view.record.as_ref());
        let workers = workers.map(|(place, record)| {
            self.0.context().cluster(place).store.workers(place.namespace.as_str(), record)
        });
        let workers = workers.unwrap_or_default();
        let policy = StagePolicy { kind: SpawnKind::DaskPool, ..self.0.context().stage_policy() };
        let waits = |pod: &Arc<stage::ObservedPod>| {
            let missing = matches!(pod.life(), PodLife::Waiting | PodLife::Failed);
            missing.then(|| stage::analyze(Some(pod), &[], &policy, Timestamp::now()).message)
        };
        let waiting = workers.iter().filter_map(waits).find(|message| !message.is_empty());
        let limited = (!state.is_satisfied()).then(|| {
            let allowed = self.0.workers_allowed();
            format!("You may have {allowed} Dask workers at a time, so the pool cannot have more now")
        });
        let pods = counts_of(workers.iter().filter(|pod| !pod.is_deleting()));
        let is_missing =
            |group: &GroupState| pods.get(&group.group).copied().unwrap_or_default() < group.demand.target;
        // An earlier refusal of the cluster no longer counts when no pod is missing.
        let refused = state.trouble.clone().filter(|_| state.groups.iter().any(is_missing));
        Some(PoolSnapshot {
            description,
            pods,
            pod: view.place.map(|place| place.pod.to_string()),
            waiting: refused.or(waiting),
            limited,
            state,
            spawn,
        })
    }

    /// True if there is no pool of this key, or if it has the certificate with this digest.
    pub fn has_certificate(&self, key: &SpawnKey, digest: &str) -> bool {
        let pool = self.0.lab(key).and_then(|spawn| spawn.about.description.pool.clone());
        pool.is_none_or(|pool| pool.certificate == digest)
    }

    /// Changes the number of workers that a pool, or one of its groups, may have. `user` is set when users change their
    /// own pools; the policies are then asked for permission.
    pub async fn scale(
        &self,
        key: &SpawnKey,
        mut resize: Resize,
        user: Option<&Identity>,
    ) -> Result<(), SpawnError> {
        self.0.require_ready()?;
        // The user's turn is taken first, so that policies count the workers that earlier requests have got.
        let turn = self.0.turn_of(&key.lab.user).await?;
        let Some(pool) = self.0.lab(key) else { return Err(Refusal::NoLab.into()) };
        let mut resized = pool.about.description.pool.clone().ok_or(Refusal::NoLab)?;
        resized.resize(&resize).map_err(|problem| impossible_resize(&problem))?;
        if let Some(identity) = user {
            let mut options = pool.about.description.options.clone();
            let group = resize.group.as_ref().and_then(|name| resized.group(name));
            options.extend(group.map(|group| group.options.clone()).unwrap_or_default());
            let question = AuthorizeRequest {
                action: Action::Scale,
                user: User::from(identity),
                server: key.lab.server.to_string(),
                options,
                subject: self.0.subject(key, Some(resized.workers)),
            };
            self.0.heard(key, authorize(&self.0.context().rules(), &question).await)?;
        }
        resize.workers = self.0.context().config.current().dask.workers(resize.workers);
        self.0.send_in_turn(key, turn, |waiting| Message::Scale(resize, waiting)).await
    }

    /// Counts the workers that all pools are to have, and those that are connected to their schedulers.
    pub fn count_workers(&self) -> (usize, usize) {
        self.0.pool_links().count_workers()
    }

    /// Connects a pool's scheduler, and returns the orders for it.
    pub fn connect_scheduler(&self, key: &SpawnKey) -> Result<watch::Receiver<WorkerOrder>, NoOrders> {
        self.0.pool_links().connect(key, self.0.most_connections_of_pods())
    }

    /// Notes the report of a pool's scheduler: the number of workers connected to it, and the number that it wants.
    pub fn report_workers(&self, key: &SpawnKey, reports: &[GroupReport]) {
        let changed = self.0.pool_links().report(key, reports, self.0.workers_allowed());
        self.0.wake_pools(&changed);
    }
}

impl Labs {
    /// Adds a pool that was accepted, or that was found after a restart with `present` workers.
    pub(crate) fn add_pool(&self, key: &SpawnKey, pool: &PoolDescription, present: &WorkerCounts) {
        let allowed = self.workers_allowed_now();
        self.wake_pools(&self.pool_links().add(key, &pool.ranges(), present, allowed));
    }

    /// Notes the numbers of worker pods of a pool.
    pub(crate) fn note_workers(&self, key: &SpawnKey, present: &WorkerCounts) {
        let allowed = self.workers_allowed_now();
        self.wake_pools(&self.pool_links().note_present(key, present, allowed));
    }

    /// The number of workers that a user may have now. Pools that are found one after the other do not grow before all
    /// are known.
    fn workers_allowed_now(&self) -> u32 {
        if self.is_ready() { self.workers_allowed() } else { 0 }
    }

    /// Distributes the workers of each user again, because all pools are known now, or another number is allowed.
    pub(crate) fn share_workers(&self) {
        self.wake_pools(&self.pool_links().share_all(self.workers_allowed()));
    }

    /// Ends a pool. Its workers count until they are gone.
    pub(crate) fn end_pool(&self, key: &SpawnKey) {
        self.wake_pools(&self.pool_links().end(key, self.workers_allowed()));
    }

    /// Changes the numbers of workers of a pool, after the driver of the pool has accepted it.
    pub(crate) fn resize_pool(&self, key: &SpawnKey, pool: &PoolDescription) {
        self.wake_pools(&self.pool_links().resize(key, &pool.ranges(), self.workers_allowed()));
    }

    /// Forgets a pool that is gone. Other pools may have its workers.
    pub(crate) fn forget_pool(&self, key: &SpawnKey) {
        self.wake_pools(&self.pool_links().forget(key, self.workers_allowed()));
    }

    fn workers_allowed(&self) -> u32 {
        self.context().config.current().limits.per_user.dask_workers.get()
    }

    fn wake_pools(&self, changed: &Changed) {
        let registry = self.registry();
        for handle in changed.iter().filter_map(|key| registry.get(key)) {
            let _ = handle.inbox.send(Box::new(Message::PoolChanged));
        }
    }
}
