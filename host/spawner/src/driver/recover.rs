//! Makes drivers after a restart, from the records and the state of the cluster.

use jiff::Timestamp;
use uuid::Uuid;
use wasmspawner_core::lifecycle::progress::{Entry, ProgressLog, StageReport};
use wasmspawner_core::lifecycle::stage::Stage;
use wasmspawner_core::lifecycle::{Failure, Lab, Outcome, Phase, SpawnStep};
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::{SpawnKey, SpawnKind};
use wasmspawner_core::record::operation_record::OperationRecord;
use wasmspawner_core::record::{self, Desired, Recovered, SpawnStatus};

use super::place_observer::PlaceObserver;
use super::requests;
use super::{Driver, Preparation};
use crate::context::Context;
use crate::decide::pod_note::PodNote;
use crate::labs::env::Env;
use crate::labs::pool_links::counts_of;
use crate::labs::quota_claims::share_of;
use crate::published::live_log::LiveLog;
use crate::published::snapshot::LabDetails;
use wasmspawner_history::HistoryEntry;
use wasmspawner_kubernetes::k8s::{KubernetesError, belongs_to, reached};
use wasmspawner_kubernetes::records::{RecordError, StoredSpawn};

/// Completes a record that was not updated after the policies decided. Their decision is noted on the pod.
pub(crate) async fn complete(
    context: &Context,
    mut stored: StoredSpawn,
) -> Result<StoredSpawn, KubernetesError> {
    let settled = |status: &SpawnStatus| status.ready_at.is_some() || status.failure.is_some();
    if stored.spec.desired == Desired::Stopped || stored.status.as_ref().is_some_and(settled) {
        return Ok(stored);
    }
    if stored.spec.place.kind.workload().is_some() {
        // The record was completed before anything was put into the workload.
        return Ok(stored);
    }
    let cluster = context.cluster(&stored.spec.place);
    if stored.spec.place.kind.cluster().is_some() && !cluster.store.is_synced() {
        // The objects in another cluster are not known yet, and the recovery does not wait for them.
        return Ok(stored);
    }
    let (pod, _) = cluster.deleter.read(&stored.spec.place, requests::TRY_FOR).await?;
    let pod = pod.filter(|pod| belongs_to(&pod.metadata, &stored.uid));
    if let Some(note) = pod.as_ref().and_then(|pod| PodNote::read(&pod.metadata)) {
        note.complete(&mut stored.spec);
    }
    if let Some(pod) = pod {
        cluster.store.put_pod(&pod);
    }
    Ok(stored)
}

/// Reads the record of one lab again; retries until the cluster answers.
pub(crate) async fn read_again(context: &Context, key: &SpawnKey) -> Option<StoredSpawn> {
    loop {
        match read(context, key).await {
            Ok(found) => return found,
            Err(error) => {
                tracing::warn!(%error, name = %key.object_name(), "the record of a lab cannot be read; it is tried again");
            }
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

/// Reads the record of one lab, and completes it. Returns `None` if there is none, or none that can be read: waiting does not
/// help then, and the lab is left as it is.
pub(crate) async fn read(context: &Context, key: &SpawnKey) -> Result<Option<StoredSpawn>, RecordError> {
    match context.records.get(&key.object_name()).await {
        Ok(Some(stored)) => Ok(Some(complete(context, stored).await?)),
        Ok(None) | Err(RecordError::Kubernetes(KubernetesError::Malformed(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts a new driver into the state that the record describes.
pub(crate) fn recover(mut driver: Box<Driver>, stored: StoredSpawn, env: Env) -> Box<Driver> {
    reached(|| format!("recover {}", stored.name));
    let context = std::sync::Arc::clone(&driver.context);
    let place = stored.spec.place.clone();
    let mut observer = PlaceObserver::new(&context, &driver.key, place, stored.uid.clone());
    observer.set_remains(stored.spec.remains.clone());
    if driver.key.kind() == SpawnKind::DaskPool {
        observer.follow_workers();
    }
    let ready = stored.status.as_ref().is_some_and(|status| status.ready_at.is_some());
    observer.set_own_namespace(stored.spec.own_namespace.clone());
    let is_empty = stored.status.as_ref().is_some_and(|status| status.stage == Stage::Stopped);
    observer.recovered(ready, stored.spec.desired == Desired::Running, is_empty);
    let is_ending = stored.spec.desired == Desired::Stopped
        || stored.status.as_ref().is_some_and(|status| status.failure.is_some());
    let of_another = stored.spec.epoch != context.records.leadership().epoch();
    // A deletion that the leader before has sent may come late. No lab is started where it would delete something.
    if stored.deleting || is_ending && of_another {
        observer.keep_nothing();
    }
    let kept = stored.status.as_ref().and_then(|status| status.pod_uid.as_deref());
    observer.set_lab(Some(stored.spec.operation.id), kept);
    let mut current = observer.observe(&driver.stage_policy(), Timestamp::now());
    driver.observe_children(&mut current);
    let fresh = JobId::new(Uuid::now_v7());
    let Recovered { lab, interrupted } = record::recover(
        &stored.spec,
        stored.status.as_ref(),
        stored.deleting,
        &current,
        observer.has_pod_of(stored.spec.operation.id),
        context.time_limits(),
        fresh,
        context.now(),
    );
    if let Phase::Starting(starting) = &lab.phase {
        observer.keep_events_of_pod();
        if let (SpawnStep::Deciding, Some(request)) = (starting.step, stored.spec.operation.request) {
            driver.preparation = Preparation::CutOff(request);
        }
    }
    let started_at = stored.spec.operation.started_at;
    let (history, known, log) = resume(&context, &driver.key, &lab, started_at, interrupted.is_some());
    driver.about = std::sync::Arc::new(about(&stored, env));
    driver.requested_by.clone_from(&stored.spec.operation.requested_by);
    driver.history = history;
    driver.log = Some(LiveLog::new(log));
    driver.observer = Some(observer);
    driver.record = Some(stored);
    driver.lab = lab;
    driver.claim_quota();
    driver.adopt_pool();
    if matches!(driver.lab.phase, Phase::Running(_)) {
        driver.count_from(driver.about.started_at.unwrap_or(started_at));
    }
    driver.close(interrupted, known);
    driver.publish();
    driver
}

/// Returns the history entry of the lab's operation, whether the history knew it before, and the operation's log.
///
/// An operation that goes on or was interrupted gets a new entry if the history has none. One that ended long ago does
/// not: otherwise the entries of all labs would displace those of recent operations. The numbers of new events must be
/// higher than all that were used before; as at most one event per millisecond was published, they continue with the
/// milliseconds since the start of the operation.
fn resume(
    context: &Context,
    key: &SpawnKey,
    lab: &Lab,
    started_at: Timestamp,
    interrupted: bool,
) -> (Option<HistoryEntry>, bool, ProgressLog) {
    let operation = lab.operation.unwrap_or_else(|| {
        context.operation(wasmspawner_core::lifecycle::OperationKind::Spawn, context.time_limits())
    });
    let known = context.history_of(key).find(key, operation.job_id);
    let is_known = known.is_some();
    let goes_on = interrupted || matches!(lab.phase, Phase::Starting(_) | Phase::Stopping(_));
    let begin = || context.history_of(key).begin(OperationRecord::begin(key.clone(), &operation));
    let history = known.or_else(|| goes_on.then(begin));
    let record = history.as_ref().map(HistoryEntry::record);
    let has_ended = record.as_ref().is_some_and(|record| record.ended_at.is_some());
    let elapsed = Timestamp::now().duration_since(started_at).as_millis();
    let next = if has_ended { 1 } else { usize::try_from(elapsed).unwrap_or(1).max(1) };
    let events = record.map(|record| record.events).unwrap_or_default();
    (history, is_known, ProgressLog::resumed(operation.job_id, events, next))
}

fn about(stored: &StoredSpawn, mut env: Env) -> LabDetails {
    let description = stored.spec.lab.clone();
    env.extend(description.hidden_env.clone());
    let started_at = (stored.spec.operation.kind == wasmspawner_core::lifecycle::OperationKind::Spawn)
        .then_some(stored.spec.operation.started_at);
    LabDetails { description, env, started_at }
}

impl Driver {
    /// Takes the share of the quota that the spawn has.
    fn claim_quota(&self) {
        if matches!(self.lab.phase, Phase::Starting(_) | Phase::Running(_) | Phase::Stopping(_)) {
            let share = share_of(&self.about.description);
            // Without a quota nothing is refused.
            let _ = self.labs.quota_claims().claim(&self.key, share, None);
        }
    }

    /// Adds the pool with its present number of workers, until its scheduler says how many it wants.
    fn adopt_pool(&self) {
        let alive = matches!(self.lab.phase, Phase::Starting(_) | Phase::Running(_));
        if let (Some(pool), Some(observer), true) = (&self.about.description.pool, &self.observer, alive) {
            let workers = observer.workers();
            let present = counts_of(workers.iter().filter(|pod| !pod.is_deleting()));
            self.labs.add_pool(&self.key, pool, &present);
        }
    }

    /// Closes what a restart left open: a spawn that was interrupted, and operations whose end is not in the history
    /// yet. An operation without an entry in the history ended long ago, and is not counted again.
    fn close(&mut self, interrupted: Option<Failure>, known: bool) {
        let (noun, now) = (self.key.kind().noun(), Timestamp::now());
        let failed = |failure: &Failure| {
            let report = StageReport::failed(failure, now);
            (Outcome::Failed(failure.clone()), Some(report), Entry::Failed(failure.message.clone()))
        };
        let (outcome, report, entry) = match (&self.lab.phase, interrupted) {
            (_, Some(failure)) => failed(&failure),
            (Phase::Running(_), _) => {
                (Outcome::Complete, None, Entry::Complete(format!("The {noun} is ready")))
            }
            (Phase::CleaningUp(_) | Phase::NamespaceKept(_) | Phase::Absent, _) => {
                let report = StageReport::stopped(noun, 100, now);
                (Outcome::Complete, Some(report), Entry::Complete(format!("The {noun} is stopped")))
            }
            (Phase::Failed(failed_lab), _) => failed(&failed_lab.failure),
            (Phase::Starting(_) | Phase::Stopping(_), _) => return,
        };
        if let Some(report) = report {
            self.publish_entry(Entry::Stage(report));
        }
        match &self.history {
            Some(history) if !known => drop(history.end(outcome, now)),
            _ => self.finish(&outcome),
        }
        self.publish_entry(entry);
    }
}
