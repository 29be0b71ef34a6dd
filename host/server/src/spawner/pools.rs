//! Dask pools: how many workers they have, and the orders for their schedulers.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{oneshot, watch};
use wasmspawner_core::dask::WorkerRange;
use wasmspawner_core::identity::Identity;
use wasmspawner_core::lab::LabKey;
use wasmspawner_core::lifecycle::{LabStatus, Refusal};
use wasmspawner_core::policy::{Action, AuthorizeRequest, User};
use wasmspawner_core::record::PoolDescription;
use wasmspawner_core::spawn_key::{ChildKind, SpawnKey, SpawnKind};
use wasmspawner_core::stage::{self, PodLife, StagePolicy};

use super::answer::{answer_by, answered};
use super::approve::authorize;
use super::errors::SpawnError;
use super::labs::Labs;
use super::message::{Message, Waiting};
use super::pool_links::{Changed, PoolState, WorkerOrder};
use super::snapshot::LabSnapshot;
use crate::telemetry::trace::Cause;

/// A Dask pool at one moment.
#[derive(Debug, Clone)]
pub struct PoolSnapshot {
    /// The scheduler's pod and its stages, as of a lab.
    pub spawn: Arc<LabSnapshot>,
    /// What the client has asked for.
    pub description: PoolDescription,
    /// What the pool wants and gets, and what its scheduler says.
    pub state: PoolState,
    /// How many pods of workers there are.
    pub pods: u32,
    /// The name of the scheduler's pod.
    pub pod: Option<String>,
    /// Why workers are missing.
    pub waiting: Option<String>,
}

impl PoolSnapshot {
    /// The address of the scheduler's pod, once the scheduler listens.
    pub fn address(&self) -> Option<&str> {
        let listens = self.spawn.status == LabStatus::Running && self.state.ready.is_some();
        self.spawn.address.as_deref().filter(|_| listens)
    }
}

impl Labs {
    /// The keys of a lab's Dask pools, sorted by their names.
    pub fn pools(&self, lab: &LabKey) -> Vec<SpawnKey> {
        self.children_of_kind(lab, ChildKind::DaskPool)
    }

    /// One Dask pool.
    pub fn pool(&self, key: &SpawnKey) -> Option<PoolSnapshot> {
        let view = self.view(key)?;
        let spawn = view.snapshot?;
        let description = spawn.about.description.pool.clone()?;
        let state = self.pool_links().get(key);
        let state = state.unwrap_or_else(|| PoolState::new(description.workers, 0));
        let workers = view.record.map(|record| self.context().store.workers(&record)).unwrap_or_default();
        let policy = StagePolicy { kind: SpawnKind::DaskPool, ..self.context().stage_policy() };
        let waits = |pod: &Arc<stage::ObservedPod>| {
            let analysis = stage::analyze(Some(pod), &[], &policy, Timestamp::now());
            matches!(pod.life(), PodLife::Waiting | PodLife::Failed).then_some(analysis.message)
        };
        let waiting = workers.iter().filter_map(waits).find(|message| !message.is_empty());
        let short = state.demand.target < state.demand.desired();
        let limited = || {
            let allowed = self.workers_allowed();
            format!("You may have {allowed} Dask workers at a time, so the pool cannot have more now")
        };
        let pods = workers.iter().filter(|pod| !pod.is_deleting()).count();
        Some(PoolSnapshot {
            description,
            pods: u32::try_from(pods).unwrap_or(u32::MAX),
            pod: view.place.map(|place| place.pod.to_string()),
            waiting: state.trouble.clone().or(waiting).or_else(|| short.then(limited)),
            state,
            spawn,
        })
    }

    /// Changes how many workers a pool may have. `user` is set when users change their own; then the policies are asked
    /// whether they may.
    pub async fn scale_pool(
        &self,
        key: &SpawnKey,
        workers: WorkerRange,
        user: Option<&Identity>,
    ) -> Result<(), SpawnError> {
        self.require_ready()?;
        let Some(pool) = self.lab(key) else { return Err(Refusal::NoLab.into()) };
        if let Some(identity) = user {
            let question = AuthorizeRequest {
                action: Action::Scale,
                user: User::from(identity),
                server: key.lab.server.to_string(),
                options: pool.about.description.options.clone(),
                subject: self.subject(key, Some(workers)),
            };
            authorize(&self.context().rules(), &question).await?;
        }
        let adaptive = self.context().config.current().dask.require_adaptive;
        let workers = if adaptive { workers.without_minimum() } else { workers };
        let (reply, answer) = oneshot::channel();
        let until = answer_by();
        let waiting = Waiting { until, reply, cause: Cause::current(), turn: None };
        self.send(key, Message::Scale(workers, waiting));
        answered(answer, until).await
    }

    /// How many workers all pools are to have, and how many are connected to their schedulers.
    pub fn count_workers(&self) -> (usize, usize) {
        self.pool_links().count_workers()
    }

    /// The orders for a pool's scheduler; `None` if there is no such pool, or if schedulers hold as many connections
    /// already as they may.
    pub fn connect_scheduler(&self, key: &SpawnKey) -> Option<watch::Receiver<WorkerOrder>> {
        self.pool_links().connect(key, self.most_connections_of_pods())
    }

    /// Notes what a pool's scheduler says: how many workers are connected to it, and how many it wants.
    pub fn report_workers(&self, key: &SpawnKey, ready: u32, wanted: u32) {
        let changed = self.pool_links().report(key, ready, wanted, self.workers_allowed());
        self.wake_pools(changed);
    }

    /// A pool was accepted, or found after a restart with `present` workers.
    pub(super) fn add_pool(&self, key: &SpawnKey, workers: WorkerRange, present: u32) {
        self.wake_pools(self.pool_links().add(key, workers, present, self.workers_allowed()));
    }

    /// The driver of a pool has accepted another number of workers.
    pub(super) fn resize_pool(&self, key: &SpawnKey, workers: WorkerRange) {
        self.wake_pools(self.pool_links().resize(key, workers, self.workers_allowed()));
    }

    /// A spawn is gone, or is ending. If it was a pool, other pools may have its workers.
    pub(super) fn forget_pool(&self, key: &SpawnKey) {
        if key.kind() == SpawnKind::DaskPool {
            self.forget_workers_of(key);
        }
    }

    fn forget_workers_of(&self, key: &SpawnKey) {
        self.wake_pools(self.pool_links().forget(key, self.workers_allowed()));
    }

    fn workers_allowed(&self) -> u32 {
        self.context().config.current().limits.per_user.dask_workers.get()
    }

    fn wake_pools(&self, changed: Changed) {
        let registry = self.registry();
        for handle in changed.iter().filter_map(|key| registry.get(key)) {
            let _ = handle.inbox.send(Box::new(Message::ChildChanged));
        }
    }
}
