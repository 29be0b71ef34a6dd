//! All labs: who asks for one finds its driver here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;
use wasmspawner_core::form::{Form, FormContext, render};
use wasmspawner_core::identity::Identity;
use wasmspawner_core::lab::{JobId, LabKey};
use wasmspawner_core::lifecycle::{LabStatus, Refusal};
use wasmspawner_core::names::ServerName;
use wasmspawner_core::operation_record::OperationRecord;
use wasmspawner_core::policy::{Action, AuthorizeRequest, Options, User};
use wasmspawner_core::progress::{EventId, ProgressLog};
use wasmspawner_core::spawn::SpawnRequest;
use wasmspawner_core::volumes::{Release, VolumeRecord};

use super::context::Context;
use super::errors::SpawnError;
use super::evaluate::{approve, authorize};
use super::live_log::{EventReader, LiveLog};
use super::message::{Message, StopRequest, Waiting};
use super::policy_report::PolicyReport;
use super::registry::{Handle, Registry};
use super::snapshot::LabSnapshot;
use super::user_locks::UserLocks;
use super::view::View;
use crate::records::{self, StoredSpawn};
use crate::wasm::LoadError;

/// How long an answer that a driver gives at the last moment may take.
const ANSWER_GRACE: Duration = Duration::from_secs(1);

/// All labs. Cheap to clone; reads come from memory and never wait.
#[derive(Clone)]
pub struct Labs {
    context: Arc<Context>,
    registry: Arc<Mutex<Registry>>,
    ready: Arc<AtomicBool>,
    draining: Arc<AtomicBool>,
    user_locks: UserLocks,
    /// Tells this start of the service from others.
    start: Uuid,
}

/// What changed of the labs since somebody asked last.
#[derive(Debug)]
pub struct LabChanges {
    /// Where to ask on from. Opaque: it names this start of the service as well.
    pub revision: String,
    /// True if these are all labs: what is not among them does not exist.
    pub complete: bool,
    /// The labs that changed.
    pub labs: Vec<Arc<LabSnapshot>>,
    /// Labs that are gone.
    pub gone: Vec<LabKey>,
}

impl Labs {
    /// No labs yet; not ready until those of the cluster are known.
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            registry: Arc::default(),
            ready: Arc::default(),
            draining: Arc::default(),
            user_locks: UserLocks::default(),
            start: Uuid::new_v4(),
        }
    }

    /// What every driver works with.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// False until the labs of the cluster are known: before that, "no such lab" would be a guess.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// The labs of the cluster are known.
    pub(super) fn mark_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// No spawn is accepted any more.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// How many labs have objects that are still being created: an end of the service now would lose those spawns.
    pub fn creating(&self) -> usize {
        self.registry().iter().filter(|(_, handle)| handle.view.borrow().creating).count()
    }

    /// Every lab and where in its life it is, sorted.
    pub fn list(&self) -> Vec<(LabKey, LabStatus)> {
        let mut labs: Vec<_> = self
            .registry()
            .iter()
            .filter_map(|(key, handle)| {
                handle.view.borrow().snapshot.as_ref().map(|lab| (key.clone(), lab.status))
            })
            .collect();
        labs.sort();
        labs
    }

    /// What changed since a revision, or all labs where that is not known.
    pub fn changes(&self, since: Option<&str>) -> Result<LabChanges, SpawnError> {
        self.known()?;
        let ours = |since: &str| since.strip_prefix(&format!("{}.", self.start))?.parse::<u64>().ok();
        let mut registry = self.registry();
        let revision = format!("{}.{}", self.start, registry.changes().last());
        let changed = since.and_then(ours).and_then(|since| registry.changes().since(since));
        let snapshot = |handle: &Handle| handle.view.borrow().snapshot.clone();
        Ok(match changed {
            Some((changed, gone)) => LabChanges {
                revision,
                complete: false,
                labs: changed.iter().filter_map(|key| registry.get(key).and_then(snapshot)).collect(),
                gone,
            },
            None => LabChanges {
                revision,
                complete: true,
                labs: registry.iter().filter_map(|(_, handle)| snapshot(handle)).collect(),
                gone: Vec::new(),
            },
        })
    }

    /// The operation on a lab that is under way, or was the last one.
    pub(super) fn job_id(&self, key: &LabKey) -> Option<JobId> {
        self.view(key)?.job_id
    }

    /// The uids of the records of all labs, those included of which only something is left.
    pub(super) fn records(&self) -> Vec<String> {
        self.registry().iter().filter_map(|(_, handle)| handle.view.borrow().record.clone()).collect()
    }

    /// The lab is as given: told by its driver.
    pub(super) fn note_change(&self, key: &LabKey, lab: Option<&LabSnapshot>) {
        self.registry().changes().note(key, lab);
    }

    /// One lab.
    pub fn lab(&self, key: &LabKey) -> Option<Arc<LabSnapshot>> {
        self.view(key)?.snapshot
    }

    /// The log of the lab's current or last operation, from after `last_seen`. The last one is replayed from its
    /// record once the lab is gone: a stop may be over before anybody asks how it goes.
    pub fn events(&self, key: &LabKey, last_seen: Option<EventId>) -> Option<EventReader> {
        let live = self.view(key).and_then(|view| view.log);
        live.or_else(|| self.recorded(key)).map(|log| log.reader(last_seen))
    }

    fn recorded(&self, key: &LabKey) -> Option<Arc<LiveLog>> {
        let last = self.context.history.last(key).filter(|last| last.ended_at.is_some())?;
        Some(LiveLog::new(ProgressLog::resumed(last.job_id, last.events, 1)))
    }

    /// The records of the lab's operations, newest first; nothing when there are none.
    pub fn history(&self, key: &LabKey) -> Option<Vec<OperationRecord>> {
        Some(self.context.history.of(key)).filter(|records| !records.is_empty())
    }

    /// Starts a lab. Returns when it has begun; the log tells the rest.
    pub async fn spawn(&self, request: SpawnRequest) -> Result<(), SpawnError> {
        self.known()?;
        if self.is_draining() {
            return Err(Refusal::ShuttingDown.into());
        }
        if self.context.health.is_away() {
            return Err(SpawnError::ClusterAway);
        }
        let key = request.key.clone();
        if let Some(refusal) = self.lab(&key).and_then(|lab| refusal(lab.status)) {
            return Err(refusal.into());
        }
        let asked = Instant::now();
        // Of two spawns of one user the second counts the first.
        let turn = tokio::time::timeout(records::TRY_FOR, self.user_locks.of(&key.user)).await;
        let _turn = turn.map_err(|_| SpawnError::NoTime)?;
        let waited = asked.elapsed();
        let labs = self.registry().other_labs(&key);
        let approved = approve(self.context.rules(), self.context.names(&key)?, request, labs).await?;
        // What the policies took is not the cluster's fault.
        let until = answer_by() - waited;
        let (reply, answer) = oneshot::channel();
        self.tell(&key, Message::Spawn(approved, Waiting { until, reply }));
        answered(answer, until).await
    }

    /// Stops a lab. Returns when that has begun. `user` is who asks for their own lab, and the policies are asked
    /// whether they may; the Hub and administrators always may. `requested_by` is the name that is written down.
    pub async fn stop(
        &self,
        key: &LabKey,
        user: Option<&Identity>,
        requested_by: &str,
    ) -> Result<(), SpawnError> {
        self.known()?;
        if let Some(identity) = user {
            let question = AuthorizeRequest {
                action: Action::Stop,
                user: User::from(identity),
                server: key.server.to_string(),
                options: Options::new(),
            };
            authorize(self.context.rules(), &question).await?;
        }
        if self.view(key).is_none() {
            return Err(Refusal::NoLab.into());
        }
        self.ask_stop(key, StopRequest::by(requested_by)).await
    }

    /// Asks the lab's driver for a stop.
    pub(super) async fn ask_stop(&self, key: &LabKey, request: StopRequest) -> Result<(), SpawnError> {
        let (reply, answer) = oneshot::channel();
        let until = answer_by();
        self.tell(key, Message::Stop(request, Waiting { until, reply }));
        answered(answer, until).await
    }

    /// The volumes that a server is remembered to use; nothing when it has used none, or none outlives its lab.
    pub fn volumes(&self, key: &LabKey) -> Option<VolumeRecord> {
        self.context.volumes.as_ref()?.of(key)
    }

    /// Deletes the volumes of a server that is deleted, as far as they may go.
    pub async fn release_volumes(&self, key: &LabKey) -> Result<Release, SpawnError> {
        self.known()?;
        if self.volumes(key).is_none() {
            return Ok(Release::default());
        }
        let (reply, answer) = oneshot::channel();
        self.tell(key, Message::Release(reply));
        answer.await.unwrap_or(Err(Refusal::VolumesInUse.into()))
    }

    /// The spawn form, as a fragment of HTML.
    pub async fn spawn_form(&self, identity: &Identity, server: &ServerName) -> Result<String, SpawnError> {
        let context = FormContext { user: User::from(identity), server: server.to_string() };
        let form = match self.context.policies.render_form(&context).await? {
            Some(answer) => answer.value,
            None => Form::Fields(Vec::new()),
        };
        Ok(render(&form))
    }

    /// The loaded policies, in the order in which they are asked.
    pub fn policies(&self) -> Vec<PolicyReport> {
        self.context
            .policies
            .loaded()
            .into_iter()
            .map(|loaded| PolicyReport::new(loaded, &self.context))
            .collect()
    }

    /// Loads all policies anew, or none of them.
    pub async fn reload_policies(&self) -> Result<(), LoadError> {
        self.context.policies.reload().await
    }

    /// A record is as given. Of a lab that nobody drives it is somebody else's, or not accepted yet.
    pub(super) fn tell_record(&self, key: &LabKey, stored: StoredSpawn) {
        if let Some(handle) = self.registry().get(key) {
            let _ = handle.inbox.send(Box::new(Message::Record(stored)));
        }
    }

    /// True while a driver looks after the lab.
    pub(super) fn has_driver(&self, key: &LabKey) -> bool {
        self.registry().get(key).is_some()
    }

    /// The cluster's API has gone away, or is back.
    pub(super) fn tell_health(&self, away: bool) {
        for (_, handle) in self.registry().iter() {
            let _ = handle.inbox.send(Box::new(Message::ClusterAway(away)));
        }
    }

    /// The lab's driver looks after it soon.
    pub(super) fn nudge(&self, key: &LabKey) {
        if let Some(handle) = self.registry().get(key) {
            let _ = handle.inbox.send(Box::new(Message::Housekeeping));
        }
    }

    /// Every driver does what is to be done now and then.
    pub(super) fn housekeeping(&self) {
        for (_, handle) in self.registry().iter() {
            let _ = handle.inbox.send(Box::new(Message::Housekeeping));
        }
    }

    /// Lets an idle driver go, unless somebody has just written to it. Messages are sent under the same lock, so none
    /// is lost.
    pub(super) fn retire(&self, key: &LabKey, inbox: &mpsc::UnboundedReceiver<Box<Message>>) -> bool {
        let mut registry = self.registry();
        if !inbox.is_empty() {
            return false;
        }
        registry.remove(key);
        true
    }

    /// Writes to a lab's driver, which is started when there is none.
    pub(super) fn tell(&self, key: &LabKey, message: Message) {
        let mut registry = self.registry();
        if let Some(handle) = registry.get(key) {
            // One that panicked is about to be replaced; who asked is told to ask again.
            let _ = handle.inbox.send(Box::new(message));
            return;
        }
        let (handle, driver) = self.driver(key);
        let _ = handle.inbox.send(Box::new(message));
        registry.insert(key.clone(), handle);
        tokio::spawn(self.clone().run(key.clone(), driver));
    }

    pub(super) fn known(&self) -> Result<(), SpawnError> {
        if self.is_ready() { Ok(()) } else { Err(SpawnError::NotReady) }
    }

    pub(super) fn view(&self, key: &LabKey) -> Option<View> {
        self.registry().get(key).map(|handle| handle.view.borrow().clone())
    }

    pub(super) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When who asks now is to be answered, however many ask at once: none waits for longer than a record is tried to be
/// written.
fn answer_by() -> Instant {
    Instant::now() + records::TRY_FOR
}

/// What a driver answers. One that is still busy with something else refuses the request when it comes to it, so that
/// whoever asked need not wait for that.
async fn answered(
    answer: oneshot::Receiver<Result<(), SpawnError>>,
    until: Instant,
) -> Result<(), SpawnError> {
    match tokio::time::timeout_at(until + ANSWER_GRACE, answer).await {
        Ok(answer) => answer.unwrap_or(Err(SpawnError::NotReady)),
        Err(_) => Err(SpawnError::NoTime),
    }
}

/// What the driver would say too. Asked first, so that no policy is asked about what cannot be.
fn refusal(status: LabStatus) -> Option<Refusal> {
    match status {
        LabStatus::Starting => Some(Refusal::SpawnInProgress),
        LabStatus::Running => Some(Refusal::LabExists),
        LabStatus::Terminating => Some(Refusal::StopInProgress),
        LabStatus::Failed => None,
    }
}
