//! The requests of a plan, as tasks that run while the driver goes on receiving messages. Each task makes a few
//! attempts at most; the driver starts it again if it is still needed.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::custom_resource::environment::{ClusterRef, NamespaceFate};
use wasmspawner_core::lifecycle::{CreationNote, Failure, Operation};
use wasmspawner_core::manifest;
use wasmspawner_core::names::LabelValue;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::record::volumes::Release;
use wasmspawner_core::record::{Place, PlaceKind, SpawnSpec, SpawnStatus};

use super::place_observer::PlaceObserver;
use crate::context::Context;
use crate::decide::again::{self, CutOff};
use crate::decide::approve::Approved;
use crate::decide::user_use::UserUse;
use crate::decide::{self, Decided, Destination, workload_requests};
use crate::errors::{SpawnError, failure};
use wasmspawner_kubernetes::k8s::{
    Causes, CreatedLab, CreationNotes, DeletionAnswer, KubernetesError, OwnedObject, belongs_to,
};
use wasmspawner_kubernetes::records::{RecordError, StoredSpawn, soon};

/// The time limit for one request. After that, the driver plans again.
pub(crate) const TRY_FOR: Duration = Duration::from_secs(15);

/// The result of a request.
pub(crate) enum TaskResult {
    Decided(Result<Box<Decided>, Failure>),
    Created(Result<Box<CreatedLab>, Failure>),
    /// The lab was put into its workload.
    PutIn(Result<(), Failure>),
    /// The stops of the children have begun, or could not begin.
    ChildrenStopping,
    /// Workers were created and deleted.
    PoolSized(PoolSized),
    /// True if the pod is gone already.
    PodDeletion(Result<bool, Failure>),
    RestDeletion(Result<Remaining, Failure>),
    /// The lab has an environment at this place.
    Bound(Result<Box<Place>, Failure>),
    Read(Result<(), Failure>),
    RecordSaved(Result<Box<StoredSpawn>, RecordError>),
    RecordDeleted(Result<(), RecordError>),
}

/// The result of a request to create and to delete workers of a pool. Failed requests are tried again, because the plan
/// then still asks for them.
pub(crate) struct PoolSized {
    /// The number of workers that were created.
    pub(crate) created: usize,
    /// A failure, if not all of them were created.
    pub(crate) refused: Option<Failure>,
    pub(crate) deleted: Result<(), Failure>,
}

/// The remains after a deletion was requested.
pub(crate) struct Remaining {
    /// True if nothing is left at the lab's own place, and the lab's claim is gone.
    pub(crate) gone: bool,
    /// True if no object of the lab is left at its own place. Its claim may still exist.
    pub(crate) objects_gone: bool,
    /// True if the lab's own namespace was not to be deleted.
    pub(crate) namespace_kept: bool,
    /// Other places where objects are left.
    pub(crate) remains: Vec<Place>,
}

/// The parts of a lab to delete besides its pod.
pub(crate) struct RestToDelete {
    pub(crate) key: SpawnKey,
    pub(crate) place: Place,
    pub(crate) own: OwnedObject,
    pub(crate) remains: Vec<Place>,
    /// The uid of the lab's own namespace if it is kept for the next lab.
    pub(crate) kept_namespace: Option<String>,
}

/// The place where the objects of a lab are created, and the record for which they are.
pub(crate) struct PlaceOfCreation {
    pub(crate) cluster: Option<ClusterRef>,
    /// The uid of the record.
    pub(crate) spawn: String,
    /// The uid of the namespace that was kept for the lab.
    pub(crate) kept_namespace: Option<String>,
}

/// Identifies the lab's own object among those that have had its name.
pub(crate) fn own(observer: &PlaceObserver, uid: Option<String>) -> OwnedObject {
    OwnedObject { spawn: observer.spawn().to_owned(), uid }
}

/// Decides what the lab is, from its approved request.
pub(crate) async fn decide(
    context: Arc<Context>,
    approved: Arc<Approved>,
    operation: Operation,
    spawn: String,
    within: Duration,
) -> TaskResult {
    let decided = Box::pin(decide::decide(&context, &approved, &operation, &spawn, within)).await;
    TaskResult::Decided(decided.map(Box::new))
}

/// Decides again what a lab is whose spawn was cut off.
pub(crate) async fn decide_again(
    context: Arc<Context>,
    cut_off: CutOff,
    so_far: UserUse,
    within: Duration,
) -> TaskResult {
    let decided = Box::pin(again::decide_again(&context, &cut_off, so_far, within)).await;
    TaskResult::Decided(decided.map(Box::new))
}

/// Creates the lab's objects: the namespace, then everything else in parallel, then the pod.
pub(crate) async fn create(
    context: Arc<Context>,
    decided: Arc<Decided>,
    place: PlaceOfCreation,
    within: Duration,
    cancel: CancellationToken,
    note: impl Fn(CreationNote) + Send + Sync,
) -> TaskResult {
    if let (Destination::Workload(lab), Some(workloads)) = (&decided.destination, &context.workloads) {
        let creator = &context.own_cluster().creator;
        let done =
            workload_requests::put_in(workloads, creator, (&decided.objects, lab), within, cancel).await;
        return TaskResult::PutIn(done.map_err(|error| failure(&error)));
    }
    let created = context
        .clusters
        .get(place.cluster.as_ref())
        .creator
        .create_lab(
            &decided.objects,
            &place.spawn,
            place.kept_namespace.as_deref(),
            within,
            cancel,
            &CreationNotes::new(&note),
        )
        .await;
    TaskResult::Created(created.map(Box::new).map_err(|error| failure(&error)))
}

/// Deletes the pod. With `force`, it is removed without waiting for its containers, because its node may be lost.
pub(crate) async fn delete_pod(
    context: Arc<Context>,
    place: Place,
    own: OwnedObject,
    force: bool,
    within: Duration,
) -> TaskResult {
    if place.kind.workload().is_some() {
        let done = workload_requests::take_out(&context, &place, &own.spawn, within).await;
        return TaskResult::PodDeletion(done.map(|()| true).map_err(|error| failure(&error)));
    }
    let grace = if force { 0 } else { context.config.current().lab.section.termination_grace_period_seconds };
    let deleted = context.cluster(&place).deleter.delete_pod(&place, own, grace, within).await;
    TaskResult::PodDeletion(
        deleted.map(|answer| answer == DeletionAnswer::Gone).map_err(|error| failure(&error)),
    )
}

/// Deletes everything else: the lab's namespace (or its objects in a retained namespace), and what an earlier lab
/// left at other places.
pub(crate) async fn delete_rest(context: Arc<Context>, rest: RestToDelete, within: Duration) -> TaskResult {
    let RestToDelete { key, place, own, remains, kept_namespace } = rest;
    let answer = async {
        let (spawn, namespace_kept) = (own.spawn.clone(), kept_namespace.is_some());
        let reclaim = context.reclaim(&key, &place);
        let objects_gone = delete_objects(&context, &place, own, (reclaim, kept_namespace), within).await?
            == DeletionAnswer::Gone;
        let claim_gone = delete_claim(&context, &place, &spawn).await?;
        let mut left = Vec::new();
        for elsewhere in remains {
            let reclaim = context.reclaim(&key, &elsewhere);
            if !delete_place(&context, &elsewhere, &spawn, reclaim, within).await? {
                left.push(elsewhere);
            }
        }
        Ok(Remaining { gone: objects_gone && claim_gone, objects_gone, namespace_kept, remains: left })
    };
    TaskResult::RestDeletion(Box::pin(answer).await.map_err(|error: KubernetesError| failure(&error)))
}

/// Requests the deletion of everything at a place; true when nothing is left there.
async fn delete_place(
    context: &Context,
    place: &Place,
    spawn: &str,
    reclaim: NamespaceReclaim,
    within: Duration,
) -> Result<bool, KubernetesError> {
    if place.kind.workload().is_some() {
        return workload_requests::clear(context, place, spawn, within).await;
    }
    let own = OwnedObject { spawn: spawn.to_owned(), uid: None };
    let grace = context.config.current().lab.section.termination_grace_period_seconds;
    let pod = context.cluster(place).deleter.delete_pod(place, own.clone(), grace, within).await?;
    let rest = delete_objects(context, place, own, (reclaim, None), within).await?;
    let claim_gone = delete_claim(context, place, spawn).await?;
    Ok(pod == DeletionAnswer::Gone && rest == DeletionAnswer::Gone && claim_gone)
}

/// Deletes the claim of a place, if it is the lab's own; true if there is none.
async fn delete_claim(context: &Context, place: &Place, spawn: &str) -> Result<bool, KubernetesError> {
    match (place.kind.own_claim(), &context.environments) {
        (Some(claim), Some(environments)) => environments.delete_claim(&claim.name, spawn).await,
        _ => Ok(true),
    }
}

async fn delete_objects(
    context: &Context,
    place: &Place,
    own: OwnedObject,
    (reclaim, kept_namespace): (NamespaceReclaim, Option<String>),
    within: Duration,
) -> Result<DeletionAnswer, KubernetesError> {
    match &place.kind {
        PlaceKind::InWorkload(_) => {
            let gone = workload_requests::delete_rest(context, place, &own.spawn, within).await?;
            return Ok(if gone { DeletionAnswer::Gone } else { DeletionAnswer::Accepted });
        }
        // The objects are deleted with the namespace of the claim.
        PlaceKind::Claimed { claim, .. } if claim.fate == NamespaceFate::Deleted => {
            return Ok(DeletionAnswer::Gone);
        }
        PlaceKind::Claimed { .. } | PlaceKind::Configured | PlaceKind::BesideLab(_) => {}
    }
    let (namespace, deleter) = (place.namespace.as_str(), context.cluster(place).deleter);
    if reclaim.is_deleted() && kept_namespace.is_none() {
        return deleter.delete_namespace(namespace, own, within).await;
    }
    let Ok(spawn) = LabelValue::parse(own.spawn.as_str()) else { return Ok(DeletionAnswer::Gone) };
    let instance = context.config.current().kubernetes.instance();
    let selector = manifest::spawn_selector(&instance, &spawn);
    let routes = context.route_kinds(place);
    if let Some(uid) = kept_namespace.filter(|_| reclaim.is_deleted()) {
        let (own, all) = (OwnedObject { uid: Some(uid), ..own }, manifest::service_selector(&instance));
        return deleter.empty_namespace(namespace, own, (&selector, &all), &routes, within).await;
    }
    deleter.delete_lab_objects(namespace, &selector, context.is_shared(place), &routes, within).await
}

/// Reads the pod and the namespace directly from the API server, into the store. `known` holds the uids that the store
/// had before. Objects that do not belong to the lab are ignored.
pub(crate) async fn read(
    context: Arc<Context>,
    place: Place,
    spawn: String,
    known: (Option<String>, Option<String>),
    within: Duration,
) -> TaskResult {
    if place.kind.workload().is_some() {
        let read = workload_requests::read(&context, &place, &spawn, within).await;
        return TaskResult::Read(read.map_err(|error| failure(&error)));
    }
    let (pod_uid, namespace_uid) = known;
    let cluster = context.cluster(&place);
    let read = cluster.deleter.read(&place, within).await.map(|(pod, namespace)| {
        match pod.filter(|pod| belongs_to(&pod.metadata, &spawn)) {
            Some(pod) => cluster.store.put_pod(&pod),
            None => cluster.store.remove_pod(&place, pod_uid.as_deref()),
        }
        match namespace.filter(|namespace| belongs_to(&namespace.metadata, &spawn)) {
            Some(namespace) => cluster.store.put_namespace(&namespace),
            None => {
                cluster.store.remove_namespace(place.namespace.as_str(), namespace_uid.as_deref());
            }
        }
    });
    TaskResult::Read(read.map_err(|error| failure(&error)))
}

/// Updates the record.
pub(crate) async fn save_record(
    context: Arc<Context>,
    stored: StoredSpawn,
    spec: SpawnSpec,
    status: SpawnStatus,
) -> TaskResult {
    TaskResult::RecordSaved(context.records.save(&stored, &spec, &status, soon()).await.map(Box::new))
}

pub(crate) async fn delete_record(context: Arc<Context>, stored: StoredSpawn) -> TaskResult {
    let deleted = context.records.delete(&stored).await;
    if let Err(error) = &deleted {
        tracing::warn!(error = %Causes(error), "the record of a lab that is gone cannot be deleted; it is tried again");
    }
    TaskResult::RecordDeleted(deleted)
}

/// Stores that this user has had a lab. If that fails, the only consequence is one more run of an idempotent init
/// container.
pub(crate) async fn mark_provisioned(context: &Context, key: &LabKey) {
    if let Err(error) = context.provisioned.insert(&key.user, Timestamp::now()).await {
        tracing::warn!(%error, "could not record that the user has had a lab");
    }
}

/// Deletes the volume claims of a server that is being deleted.
pub(crate) async fn release(context: &Context, key: &LabKey) -> Result<Release, SpawnError> {
    let released = match &context.volumes {
        Some(volumes) => volumes.release(key).await.map_err(SpawnError::from),
        None => Ok(Release::default()),
    };
    if let Ok(Release { delete, keep }) = &released {
        tracing::info!(user = %key.user, server = %key.server, deleted = delete.len(), kept = keep.len(), "the volumes of a deleted server are released");
    }
    released
}
