//! The background tasks of the spawner.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::custom_resource::environment::ClusterRef;
use wasmspawner_core::lifecycle::LabStatus;
use wasmspawner_core::manifest;
use wasmspawner_core::names::spawn_key::{SpawnKey, SpawnKind};
use wasmspawner_core::names::{NamespaceName, ObjectName};
use wasmspawner_core::record::Place;
use wasmspawner_core::workload::installation_label;

use super::forgotten;
use super::sweep::sweep;
use crate::driver::recover;
use crate::labs::Labs;
use wasmspawner_kubernetes::clusters::OnHealth;
use wasmspawner_kubernetes::k8s::{Causes, KubernetesError};
use wasmspawner_kubernetes::observed::Reach;
use wasmspawner_kubernetes::records::{
    DefinitionError, Listed, ListedRecord, RecordChange, StoredSpawn, UnreadableRecord,
};
use wasmspawner_kubernetes::workloads::Workloads;

/// Finds out which labs there are, then follows the cluster until `stop`. The service is ready once the labs are known.
/// While the cluster cannot be reached, this retries.
pub async fn run(labs: Labs, watches: kube::Client, stop: CancellationToken) {
    let context = labs.context();
    let selector = manifest::service_selector(&context.config.current().kubernetes.instance());
    let reach = context.reach();
    let store = &context.own_cluster().store;
    let known = async {
        store.first_sync().await;
        if let Some(environments) = &context.environments {
            environments.first_sync().await;
        }
        context.blueprints.first_sync().await;
        if let Some(workloads) = &context.workloads {
            workloads.first_sync().await;
        }
        initial_recovery(&labs).await
    };
    let later = async {
        if let Some(Recovered { history_is_closed, .. }) = stop.run_until_cancelled(known).await {
            let late_history = async {
                if !history_is_closed {
                    labs.context().history.complete().await;
                    close_history(&labs);
                }
            };
            tokio::join!(
                store.run_events(watches.clone(), &reach, &stop),
                follow_records(&labs, watches.clone(), &stop),
                housekeeping(&labs, &stop),
                follow_health(&labs, &stop),
                forgotten::follow(&labs, &stop),
                stop.run_until_cancelled(late_history),
            );
        }
    };
    tokio::join!(
        store.run(watches.clone(), &reach, &selector, &stop),
        context.clusters.follow_others(&stop, tell_health(&labs)),
        run_environments(&labs, &stop),
        context.blueprints.run(context.config.follow(), &stop),
        follow_workloads(&labs, watches.clone(), &stop),
        later
    );
}

/// Manages claims, targets and classes, where the site has them.
async fn run_environments(labs: &Labs, stop: &CancellationToken) {
    if let Some(environments) = &labs.context().environments {
        Box::pin(environments.run(stop)).await;
    }
}

/// Follows the workloads into which labs may be put, where there are namespaces for that.
async fn follow_workloads(labs: &Labs, watches: kube::Client, stop: &CancellationToken) {
    if let Some(workloads) = &labs.context().workloads {
        let label = installation_label(&labs.context().config.current().kubernetes.instance());
        workloads.run(watches, &label, stop).await;
    }
}

/// The reason why the labs are not known yet.
#[derive(Debug, thiserror::Error)]
enum RecoverError {
    #[error(transparent)]
    Cluster(#[from] KubernetesError),
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// A lab was started with another value of `kubernetes.namespaces` or `names.namespace`, and its objects cannot be
    /// seen now.
    #[error(
        "the lab of the record {record} is in the namespace {namespace}, and kubernetes.namespaces is `single`; start \
         the service with the configuration of before, stop the lab, and try again"
    )]
    Elsewhere { record: ObjectName, namespace: NamespaceName },
    /// A lab has its namespace through a claim, and the service knows no claims now.
    #[error(
        "the lab of the record {record} has a DeploymentTargetClaim, and `environments` is not configured; start the \
         service with that section, stop the lab, and try again"
    )]
    Claimed { record: ObjectName },
    /// A lab is in a workload of a namespace that the configuration does not name any more.
    #[error(
        "the lab of the record {record} is in a workload of the namespace {namespace}, which is not one of \
         workloads.namespaces; start the service with that namespace, stop the lab, and try again"
    )]
    Unlisted { record: ObjectName, namespace: NamespaceName },
}

/// Refuses records of labs that have objects outside of the reach. The service would take the labs for gone, and leave
/// their pods running.
fn refuse_elsewhere(reach: &Reach, records: &[StoredSpawn]) -> Result<(), RecoverError> {
    let Reach::Namespace(single) = reach else { return Ok(()) };
    for stored in records {
        let places = stored.spec.remains.iter().chain([&stored.spec.place]);
        let elsewhere = |place: &&Place| place.namespace != *single && place.kind.workload().is_none();
        if let Some(place) = places.into_iter().find(elsewhere) {
            let (record, namespace) = (stored.name.clone(), place.namespace.clone());
            return Err(RecoverError::Elsewhere { record, namespace });
        }
    }
    Ok(())
}

/// Refuses records of labs in workloads that the service does not follow.
fn refuse_unlisted(workloads: Option<&Workloads>, records: &[StoredSpawn]) -> Result<(), RecoverError> {
    for stored in records {
        let places = stored.spec.remains.iter().chain([&stored.spec.place]);
        let unlisted = |place: &&Place| {
            place.kind.workload().is_some()
                && !workloads.is_some_and(|workloads| workloads.are_in(&place.namespace))
        };
        if let Some(place) = places.into_iter().find(unlisted) {
            let (record, namespace) = (stored.name.clone(), place.namespace.clone());
            return Err(RecoverError::Unlisted { record, namespace });
        }
    }
    Ok(())
}

/// Refuses records of labs that have claims if the service knows none.
fn refuse_claimed(knows_claims: bool, records: &[StoredSpawn]) -> Result<(), RecoverError> {
    let claimed = |stored: &&StoredSpawn| stored.spec.place.kind.claim().is_some() && !knows_claims;
    match records.iter().find(claimed) {
        Some(stored) => Err(RecoverError::Claimed { record: stored.name.clone() }),
        None => Ok(()),
    }
}

/// Waits until the cluster keeps what the service writes. Nothing is done before.
pub async fn prepare(labs: &Labs) {
    until_done(|| check_definition(labs)).await;
}

/// The time that a new leader gives the history of the one before.
const HISTORY: Duration = Duration::from_secs(1);

/// Finds out which labs there are.
async fn initial_recovery(labs: &Labs) -> Recovered {
    let recovered = until_done(|| recover_all(labs)).await;
    tracing::info!(labs = recovered.labs, "the labs of the cluster are known");
    labs.mark_known();
    recovered
}

/// What a recovery has found.
struct Recovered {
    labs: usize,
    /// False if the history that the leader before has written is not known yet.
    history_is_closed: bool,
}

/// Repeats a step of the recovery until it succeeds, and returns its result.
async fn until_done<T, F: Future<Output = Result<T, RecoverError>>>(step: impl Fn() -> F) -> T {
    let mut pause = Duration::from_millis(200);
    loop {
        match step().await {
            Ok(done) => return done,
            Err(error @ RecoverError::Cluster(_)) => {
                tracing::warn!(error = %Causes(&error), ?pause, "the labs cannot be listed yet");
            }
            Err(error) => {
                tracing::error!(error = %Causes(&error), ?pause, "the service does not become ready");
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(10));
    }
}

async fn check_definition(labs: &Labs) -> Result<(), RecoverError> {
    let context = labs.context();
    // The service itself has given the one-machine cluster its definitions.
    if context.config.current().embedded.is_none() {
        context.records.check_definition().await?;
    }
    Ok(())
}

/// Starts a driver for every record. The stored volumes are read first: a lab that
/// starts without them would get another volume.
async fn recover_all(labs: &Labs) -> Result<Recovered, RecoverError> {
    let context = labs.context();
    context.history.lead(context.records.leadership().epoch());
    context.provisioned.load().await?;
    context.own_cluster().creator.load().await?;
    if let Some(volumes) = &context.volumes {
        volumes.load().await?;
    }
    let (listed, mut env_of_labs) = tokio::try_join!(context.records.list(), labs.list_env())?;
    let records = listed.read;
    let is_read = |uid: &str| records.iter().any(|stored| stored.uid == uid);
    labs.unreadable().listed(&labs.unreadable().uids(), is_read, listed.unreadable);
    let epochs = records.iter().map(|stored| stored.spec.epoch);
    context.records.leadership().exceed(epochs.max().unwrap_or_default());
    refuse_elsewhere(&context.reach(), &records)?;
    refuse_unlisted(context.workloads.as_ref(), &records)?;
    refuse_claimed(context.environments.is_some(), &records)?;
    // Operations that go on continue the events that the leader before has written. They go on without them, too.
    let history_is_closed = tokio::time::timeout(HISTORY, context.history.complete()).await.is_ok();
    if !history_is_closed {
        tracing::warn!("the history of the leader before is not known yet; the labs do not wait for it");
    }
    let found = records.len();
    let completed = records.into_iter().map(|stored| recover::complete(context, stored));
    let mut completed = try_join_all(completed).await?;
    // Children come before their labs, so that a lab that is being stopped finds them.
    completed.sort_by_key(|stored| matches!(stored.spec.kind, SpawnKind::Lab | SpawnKind::Injected));
    for stored in completed {
        let Place { namespace, kind, .. } = &stored.spec.place;
        let listed = env_of_labs.remove(&(namespace.to_string(), stored.uid.clone()));
        let env = kind.cluster().is_none().then(|| listed.unwrap_or_default());
        let key = stored.key.clone();
        labs.adopt(&key, stored, env);
    }
    labs.stop_orphans();
    if history_is_closed {
        close_history(labs);
    }
    Ok(Recovered { labs: found, history_is_closed })
}

/// Closes the operations and the runs in the history that ended while no process led.
fn close_history(labs: &Labs) {
    let context = labs.context();
    // A lab whose record cannot be read may be doing anything.
    let is_unreadable = |key: &SpawnKey| labs.unreadable().record_of(key).is_some();
    context.history.close_interrupted(Timestamp::now(), |key, operation| {
        labs.job_id(key) == Some(operation) || is_unreadable(key)
    });
    let runs = |key: &SpawnKey| labs.lab(key).is_some_and(|spawn| spawn.status == LabStatus::Running);
    context.history.close_runs(|key| runs(key) || is_unreadable(key));
}

async fn follow_records(labs: &Labs, client: kube::Client, stop: &CancellationToken) {
    let context = labs.context();
    let config = context.config.current();
    let namespace = config.kubernetes.namespace.as_str();
    let on_change = |change| match change {
        RecordChange::Written(stored) => {
            context.records.leadership().end_if_later(stored.spec.epoch);
            // Without a driver, the lab stays as it is until it is adopted.
            if labs.view(&stored.key).is_some_and(|view| view.record.as_ref() == Some(&stored.uid)) {
                labs.unreadable().remove(&stored.uid);
            }
            if labs.has_driver(&stored.key) {
                labs.send_record(&stored.key.clone(), *stored);
            }
        }
        RecordChange::Unreadable(record) => labs.unreadable().add(record),
        RecordChange::Deleted { uid } => labs.unreadable().remove(&uid),
    };
    context.records.watch(client, namespace, stop, on_change).await;
}

/// Returns a callback that tells the labs of another cluster when the cluster is away.
fn tell_health(labs: &Labs) -> OnHealth {
    let labs = labs.clone();
    Arc::new(move |cluster: &ClusterRef, away| {
        let secret = &cluster.secret;
        if away {
            tracing::error!(%secret, "the Kubernetes API of another cluster does not answer; its labs are affected, no others");
        } else {
            tracing::info!(%secret, "the Kubernetes API of another cluster answers again");
        }
        labs.send_health(Some(cluster), away);
    })
}

async fn follow_health(labs: &Labs, stop: &CancellationToken) {
    let mut health = labs.context().own_cluster().health().follow();
    while let Some(Ok(())) = stop.run_until_cancelled(health.changed()).await {
        let away = *health.borrow_and_update();
        if away {
            tracing::error!("the Kubernetes API does not answer");
        } else {
            tracing::info!("the Kubernetes API answers again");
        }
        labs.send_health(None, away);
    }
}

/// Starts drivers for records that have none. Such a record exists if the request that created it succeeded after the
/// service had given it up.
async fn adopt_unknown(labs: &Labs) {
    let context = labs.context();
    let before = labs.unreadable().uids();
    let Listed { read: recorded, unreadable } = match context.records.keys().await {
        Ok(listed) => listed,
        Err(error) => return tracing::warn!(error = %Causes(&error), "the records cannot be listed now"),
    };
    for ListedRecord { key, uid } in &recorded {
        if labs.has_driver(key) {
            continue;
        }
        let (user, server) = (&key.lab.user, &key.lab.server);
        match recover::read(context, key).await {
            Ok(Some(stored)) => {
                tracing::info!(%user, %server, "the record of a lab without a driver is adopted");
                labs.adopt(key, stored, None);
            }
            Ok(None) => {}
            // The lab may run, and the other labs do not wait for it.
            Err(error) => {
                tracing::warn!(error = %Causes(&error), %user, %server, "the record of a lab without a driver cannot be read; it is tried again later");
                let (name, problem) = (key.object_name().to_string(), Causes(&error).to_string());
                labs.unreadable().add(UnreadableRecord { name, uid: uid.clone(), problem });
            }
        }
    }
    let is_read = |uid: &str| recorded.iter().any(|record| record.uid == uid);
    labs.unreadable().listed(&before, is_read, unreadable);
    labs.stop_orphans();
}

/// Does the periodic work: drops old history, removes failed labs that were kept for long enough, and reports orphans.
async fn housekeeping(labs: &Labs, stop: &CancellationToken) {
    const FIRST_SWEEP_AFTER: Duration = Duration::from_secs(10);
    let every = Duration::try_from(labs.context().config.current().limits.reconcile_every)
        .unwrap_or(FIRST_SWEEP_AFTER);
    let mut pause = FIRST_SWEEP_AFTER.min(every);
    while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
        pause = every;
        labs.context().history.expire(Timestamp::now());
        labs.context().history_of_children.expire(Timestamp::now());
        labs.housekeeping();
        let looking = async {
            Box::pin(sweep(labs)).await;
            Box::pin(adopt_unknown(labs)).await;
        };
        stop.run_until_cancelled(looking).await;
    }
}
