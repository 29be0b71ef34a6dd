//! The workers of a Dask pool, which are created and deleted by the driver of the pool.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::children::dask::{Resize, WorkerPlan, WorkerPod, plan_workers};
use wasmspawner_core::custom_resource::environment::ClusterRef;
use wasmspawner_core::lifecycle::{Observed, Phase, Refusal};
use wasmspawner_core::manifest::{self, ParentPod};
use wasmspawner_core::names::spawn_key::SpawnKind;
use wasmspawner_core::names::{LabelValue, ObjectName, WorkerGroupName};
use wasmspawner_core::record::Place;

use super::Driver;
use super::place_observer::PlaceObserver;
use super::requests::{PoolSized, TaskResult};
use crate::context::Context;
use crate::errors::denied_by::DeniedBy;
use crate::errors::{SpawnError, failure};
use crate::labs::pool_links::{GroupState, counts_of, impossible_resize};
use crate::labs::quota_claims::share_of;
use wasmspawner_kubernetes::k8s::{DeletionAnswer, KubernetesError, OwnedObject};
use wasmspawner_kubernetes::random_token::random_suffix;

/// The most workers that one request of the plan creates. A change of the plan then does not wait for hundreds of them.
const MAX_AT_ONCE: u32 = 50;

/// The workers of a pool to create and to delete.
pub(super) struct WorkersToSize {
    create: Vec<Pod>,
    delete: Vec<WorkerToDelete>,
    spawn: String,
    cluster: Option<ClusterRef>,
}

/// The pod of a worker to delete, and its grace period in seconds.
struct WorkerToDelete {
    place: Place,
    own: OwnedObject,
    grace: u32,
}

fn worker_at(
    observer: &PlaceObserver,
    name: &str,
    uid: Option<String>,
    grace: u32,
) -> Option<WorkerToDelete> {
    let place = Place { pod: ObjectName::parse(name).ok()?, ..observer.place().clone() };
    Some(WorkerToDelete { place, own: OwnedObject { spawn: observer.spawn().to_owned(), uid }, grace })
}

impl Driver {
    /// Notes in an observation whether the pool has the workers that it should have. Returns the time at which that
    /// changes if nothing else happens.
    pub(super) fn observe_workers(&self, observed: &mut Observed) -> Option<Timestamp> {
        if self.key.kind() != SpawnKind::DaskPool {
            return None;
        }
        let workers = self.observer.as_ref().map(PlaceObserver::workers).unwrap_or_default();
        self.labs.note_workers(&self.key, &counts_of(workers.iter()));
        let plans = self.plans_of_workers()?;
        observed.is_unsized = plans.iter().any(|(_, plan)| !plan.is_empty());
        plans.iter().filter_map(|(_, plan)| plan.again_at).min()
    }

    /// The workers of each group to create and to delete.
    fn plans_of_workers(&self) -> Option<Vec<(Option<WorkerGroupName>, WorkerPlan)>> {
        // A pool that starts needs its workers as soon as its scheduler runs.
        let alive = matches!(self.lab.phase, Phase::Starting(_) | Phase::Running(_));
        if !alive {
            return None;
        }
        let groups = self.labs.pool_links().get(&self.key)?.groups;
        let (workers, now) = (self.observer.as_ref()?.workers(), Timestamp::now());
        let plan = |GroupState { group, demand, .. }: GroupState| {
            let own = workers.iter().filter(|pod| pod.group == group);
            let own: Vec<WorkerPod> = own.map(|pod| WorkerPod::from(pod.as_ref())).collect();
            (group, plan_workers(demand.target, &own, now))
        };
        Some(groups.into_iter().map(plan).collect())
    }

    /// Returns the pods to create and to delete now; `None` if this is not a pool with a running scheduler.
    pub(super) fn workers_to_size(&self) -> Option<WorkersToSize> {
        let plans = self.plans_of_workers()?;
        let observer = self.observer.as_ref()?;
        let scheduler = observer.pod()?;
        let pool = self.about.description.pool.as_ref()?;
        let owner = ParentPod {
            name: scheduler.name.clone(),
            uid: scheduler.uid.clone()?,
            spawn: LabelValue::parse(observer.spawn().to_owned()).ok()?,
        };
        let address = scheduler.ip.clone()?;
        let grace = self.grace();
        let (mut create, mut delete) = (Vec::new(), Vec::new());
        // An equal share of each group, so that a large group does not keep a small one waiting.
        let at_once = MAX_AT_ONCE / u32::try_from(plans.len()).unwrap_or(1).max(1);
        for (group, plan) in plans {
            let doomed = plan.delete.into_iter();
            delete.extend(doomed.filter_map(|(name, uid)| worker_at(observer, &name, uid, grace)));
            if plan.create == 0 {
                continue;
            }
            let template: Pod = serde_json::from_value(pool.template(group.as_ref())?.clone())
                .inspect_err(|error| tracing::error!(%error, pool = %self.key, "the pod of the pool's workers cannot be read"))
                .ok()?;
            create.extend((0..plan.create.min(at_once)).map(|_| {
                let name = format!("{}-{}", scheduler.name, random_suffix());
                manifest::dask_worker(&template, &name, &owner, &address)
            }));
        }
        Some(WorkersToSize {
            create,
            delete,
            spawn: observer.spawn().to_owned(),
            cluster: observer.place().kind.cluster().cloned(),
        })
    }

    /// Returns all workers as pods to delete. They are deleted before the scheduler.
    pub(super) fn workers_to_delete(&self) -> WorkersToSize {
        let observer = self.observer.as_ref();
        let workers = observer.map(PlaceObserver::workers).unwrap_or_default();
        let delete = workers.iter().filter_map(|pod| {
            let overdue = self.is_long_overdue(pod.deletion);
            let grace = if overdue { 0 } else { self.grace() };
            let wanted = overdue || !pod.is_deleting();
            worker_at(observer?, &pod.name, pod.uid.clone(), grace).filter(|_| wanted)
        });
        let delete = delete.collect();
        let spawn = observer.map(|observer| observer.spawn().to_owned()).unwrap_or_default();
        let cluster = observer.and_then(|observer| observer.place().kind.cluster().cloned());
        WorkersToSize { create: Vec::new(), delete, spawn, cluster }
    }

    fn grace(&self) -> u32 {
        self.context.config.current().lab.section.termination_grace_period_seconds
    }

    /// Changes the number of workers that the pool, or one of its groups, may have. The record is written before the
    /// request is answered.
    pub(super) async fn accept_scale(
        &mut self,
        resize: Resize,
        until: tokio::time::Instant,
    ) -> Result<(), SpawnError> {
        self.finish_record_write_by(until).await?;
        match self.lab.phase {
            Phase::Starting(_) | Phase::Running(_) => {}
            Phase::Stopping(_) => return Err(Refusal::StopInProgress.into()),
            Phase::Failed(_) | Phase::CleaningUp(_) | Phase::NamespaceKept(_) | Phase::Absent => {
                return Err(Refusal::NoLab.into());
            }
        }
        let Some(mut pool) = self.about.description.pool.clone() else { return Err(Refusal::NoLab.into()) };
        pool.resize(&resize).map_err(|problem| impossible_resize(&problem))?;
        let before = Arc::clone(&self.about);
        let about = Arc::make_mut(&mut self.about);
        Arc::make_mut(&mut about.description).pool = Some(pool.clone());
        let claims = self.labs.quota_claims();
        if let Err(refused) = claims.change(&self.key, share_of(&self.about.description)) {
            self.about = before;
            return Err(SpawnError::denied(refused.to_string(), DeniedBy::quota()));
        }
        if let Some(observer) = &self.observer {
            let spec = self.spec_of(&self.lab, self.requested_by.clone(), observer.place().clone());
            if let Err(error) = self.rewrite(&spec, until).await {
                self.about = before;
                let _ = self.labs.quota_claims().change(&self.key, share_of(&self.about.description));
                return Err(error);
            }
        }
        self.labs.resize_pool(&self.key, &pool);
        self.publish();
        self.observe();
        Ok(())
    }
}

/// Creates and deletes workers.
pub(super) async fn size(
    context: Arc<Context>,
    workers: WorkersToSize,
    within: Duration,
    cancel: CancellationToken,
) -> TaskResult {
    let WorkersToSize { create, delete, spawn, cluster } = workers;
    let cluster = context.clusters.get(cluster.as_ref());
    let deleted = join_all(delete.into_iter().map(async |WorkerToDelete { place, own, grace }| {
        let uid = own.uid.clone();
        let answer = cluster.deleter.delete_pod(&place, own, grace, within).await?;
        if answer == DeletionAnswer::Gone {
            cluster.store.remove_pod(&place, uid.as_deref());
        }
        Ok::<(), KubernetesError>(())
    }));
    let created = join_all(create.into_iter().map(async |pod| {
        let created = cluster.creator.create_pod(pod, &spawn, within, cancel.clone()).await?;
        cluster.store.put_pod(&created);
        Ok::<(), KubernetesError>(())
    }));
    let (deleted, created) = futures::future::join(deleted, created).await;
    TaskResult::PoolSized(PoolSized {
        created: created.iter().filter(|result| result.is_ok()).count(),
        refused: created.into_iter().find_map(Result::err).map(|error| failure(&error)),
        deleted: deleted.into_iter().collect::<Result<(), _>>().map_err(|error| failure(&error)),
    })
}
