//! All labs of the service, and access to their drivers.

pub(crate) mod answer;
pub(crate) mod env;
pub(crate) mod kernel_links;
pub(crate) mod lab_events;
pub(crate) mod message;
pub(crate) mod pod_logs;
pub(crate) mod pool_links;
pub(crate) mod quota_claims;
pub(crate) mod registry;
pub(crate) mod turn;
pub(crate) mod unreadable;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use uuid::Uuid;
use wasmspawner_core::custom_resource::environment::ClusterRef;
use wasmspawner_core::lifecycle::progress::{EventId, ProgressLog};
use wasmspawner_core::lifecycle::{LabStatus, Refusal};
use wasmspawner_core::names::Username;
use wasmspawner_core::names::lab::{JobId, LabKey};
use wasmspawner_core::names::spawn_key::{SpawnKey, SpawnKind};
use wasmspawner_core::policy::spawn::SpawnRequest;
use wasmspawner_core::policy::{Action, AuthorizeRequest, Options, User};
use wasmspawner_core::record::operation_record::OperationRecord;
use wasmspawner_core::record::volumes::{Release, VolumeRecord};
use wasmspawner_core::users::identity::Identity;

use self::answer::{answer_by, answered};
use self::kernel_links::KernelLinks;
use self::message::{Message, StopRequest, Waiting};
use self::pod_logs::LogReaders;
use self::pool_links::PoolLinks;
use self::quota_claims::QuotaClaims;
use self::registry::{Handle, Registry};
use self::unreadable::UnreadableRecords;
use super::context::Context;
use super::errors::{SpawnError, refusal};
use crate::decide::approve::approve;
use crate::decide::permission::authorize;
use crate::decide::user_use::UserUse;
use crate::decide::workload_requests;
use crate::published::live_log::{EventReader, LiveLog};
use crate::published::snapshot::LabSnapshot;
use crate::published::view::View;
use wasmspawner_kubernetes::leadership::Standing;
use wasmspawner_kubernetes::records::StoredSpawn;
use wasmspawner_policies::Patience;
use wasmspawner_tasks::per_key::PerKey;
use wasmspawner_telemetry::trace::Cause;

/// All labs. Clones share the state. Reads come from memory and never wait.
#[derive(Clone)]
pub struct Labs {
    context: Arc<Context>,
    registry: Arc<Mutex<Registry>>,
    known: Arc<watch::Sender<bool>>,
    draining: Arc<AtomicBool>,
    user_locks: Arc<PerKey<Username>>,
    log_readers: Arc<LogReaders>,
    kernel_links: Arc<KernelLinks>,
    pool_links: Arc<PoolLinks>,
    quota_claims: Arc<QuotaClaims>,
    unreadable: Arc<UnreadableRecords>,
    /// Distinguishes this run of the service from earlier ones, in revisions.
    start: Uuid,
}

/// The labs that have changed since a revision.
#[derive(Debug)]
pub struct LabChanges {
    /// The present revision, for the next question. It is opaque, and belongs to this run of the service.
    pub revision: String,
    /// True if these are all labs: a lab that is not among them does not exist.
    pub complete: bool,
    /// The labs that changed.
    pub labs: Vec<Arc<LabSnapshot>>,
    /// Labs that do not exist any more.
    pub gone: Vec<LabKey>,
}

impl Labs {
    /// Creates the state without any labs. It is not ready until the labs in the cluster are known.
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            registry: Arc::default(),
            known: Arc::default(),
            draining: Arc::default(),
            user_locks: Arc::new(PerKey::one()),
            log_readers: Arc::default(),
            kernel_links: Arc::default(),
            pool_links: Arc::default(),
            quota_claims: Arc::default(),
            unreadable: Arc::default(),
            start: Uuid::new_v4(),
        }
    }

    /// The connections to the launchers of kernels.
    pub(crate) fn kernel_links(&self) -> &KernelLinks {
        &self.kernel_links
    }

    /// The demands of the Dask pools, and the connections to their schedulers.
    pub(crate) fn pool_links(&self) -> &PoolLinks {
        &self.pool_links
    }

    /// The share of its user's quota that each spawn takes.
    pub(crate) fn quota_claims(&self) -> &QuotaClaims {
        &self.quota_claims
    }

    /// The records that this version of the service cannot read.
    pub(crate) fn unreadable(&self) -> &UnreadableRecords {
        &self.unreadable
    }

    /// Waits for the user's turn to have a spawn approved.
    pub(crate) async fn user_lock(&self, user: &Username) -> Option<OwnedSemaphorePermit> {
        self.user_locks.take(user).await
    }

    /// The configuration and modules that every driver uses.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// True while this process knows the labs of the cluster: it leads, and has found out which there are. Otherwise "no
    /// such lab" could be wrong.
    pub fn is_ready(&self) -> bool {
        *self.known.borrow() && self.standing() == Standing::Leads
    }

    /// True if no other process can have taken over meanwhile, so that "no such lab" is certain.
    pub fn is_certain(&self) -> bool {
        self.is_ready() && self.context.records.leadership().may_change()
    }

    /// Returns the role of this process in its installation.
    pub fn standing(&self) -> Standing {
        self.context.records.leadership().standing()
    }

    /// Waits until the labs in the cluster are known.
    pub async fn until_known(&self) {
        let mut known = self.known.subscribe();
        // The sender lives as long as `self`.
        let _ = known.wait_for(|known| *known).await;
    }

    /// Marks the service as ready. Called once the labs in the cluster are known.
    pub(crate) fn mark_known(&self) {
        self.known.send_replace(true);
        self.share_workers();
    }

    /// Refuses all spawns from now on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// The number of labs whose objects are still being created. If the service ended now, those spawns would be lost.
    pub fn creating(&self) -> usize {
        self.registry().iter().filter(|(_, handle)| handle.view.borrow().creating).count()
    }

    /// All labs with their status, sorted. Fails while another process may know others.
    pub fn list(&self) -> Result<Vec<(LabKey, LabStatus)>, SpawnError> {
        self.require_certain()?;
        Ok(self.statuses())
    }

    /// The labs that this process knows, with their status, sorted.
    pub fn statuses(&self) -> Vec<(LabKey, LabStatus)> {
        let mut labs: Vec<_> = self
            .registry()
            .iter()
            .filter(|(key, _)| key.is_lab())
            .filter_map(|(key, handle)| {
                handle.view.borrow().snapshot.as_ref().map(|lab| (key.lab.clone(), lab.status))
            })
            .collect();
        labs.sort();
        labs
    }

    /// The number of labs with less than the security baseline.
    pub fn count_lifted(&self) -> usize {
        let is_lifted = |lab: &LabSnapshot| !lab.about.description.lifted.is_empty();
        let registry = self.registry();
        let views = registry.iter().map(|(_, handle)| handle.view.borrow());
        views.filter(|view| view.snapshot.as_deref().is_some_and(is_lifted)).count()
    }

    /// The labs that have changed since a revision, or all labs if that revision is not known.
    pub fn changes(&self, since: Option<&str>) -> Result<LabChanges, SpawnError> {
        self.require_certain()?;
        let ours = |since: &str| since.strip_prefix(&format!("{}.", self.start))?.parse::<u64>().ok();
        let mut registry = self.registry();
        let revision = format!("{}.{}", self.start, registry.changes().last());
        let changed = since.and_then(ours).and_then(|since| registry.changes().since(since));
        let snapshot = |handle: &Handle| handle.view.borrow().snapshot.clone();
        Ok(match changed {
            Some((changed, gone)) => LabChanges {
                revision,
                complete: false,
                labs: changed
                    .into_iter()
                    .filter_map(|lab| registry.get(&lab.into()).and_then(snapshot))
                    .collect(),
                gone,
            },
            None => LabChanges {
                revision,
                complete: true,
                labs: registry
                    .iter()
                    .filter(|(key, _)| key.is_lab())
                    .filter_map(|(_, handle)| snapshot(handle))
                    .collect(),
                gone: Vec::new(),
            },
        })
    }

    /// The id of the lab's operation under way, or of its last one.
    pub(crate) fn job_id(&self, key: &SpawnKey) -> Option<JobId> {
        self.view(key)?.job_id
    }

    /// The uids of the records of all labs, including labs of which only remains are left, and of those that cannot be
    /// read.
    pub(crate) fn records(&self) -> Vec<String> {
        let unreadable = self.unreadable.uids();
        let registry = self.registry();
        registry
            .iter()
            .filter_map(|(_, handle)| handle.view.borrow().record.clone())
            .chain(unreadable)
            .collect()
    }

    /// Notes the new state of a lab or a child; called by its driver. A lab that is being stopped waits for its
    /// children.
    pub(crate) fn note_change(&self, key: &SpawnKey, spawn: Option<&LabSnapshot>) {
        if spawn.is_none_or(|spawn| spawn.status == LabStatus::Failed) {
            self.quota_claims.release(key);
        }
        let mut registry = self.registry();
        if key.is_lab() {
            registry.changes().note(&key.lab, spawn);
            return;
        }
        if let Some(lab) = registry.get(&key.lab.clone().into()) {
            let _ = lab.inbox.send(Box::new(Message::ChildChanged));
        }
        drop(registry);
        if spawn.is_none() {
            self.kernel_links.forget(key);
        }
        match spawn.map(|spawn| spawn.status) {
            _ if key.kind() != SpawnKind::DaskPool => {}
            None => self.forget_pool(key),
            Some(LabStatus::Terminating | LabStatus::Failed) => self.end_pool(key),
            Some(LabStatus::Starting | LabStatus::Running) => {}
        }
    }

    /// The state of one lab or child; `None` if it does not exist.
    pub fn lab(&self, key: &SpawnKey) -> Option<Arc<LabSnapshot>> {
        self.view(key)?.snapshot
    }

    /// A reader of the lab's present or last operation, from the event after `last_seen`. Once the lab is gone, its
    /// last operation is replayed from its record, because a stop may be over before its events are requested.
    pub fn events(&self, key: &SpawnKey, last_seen: Option<EventId>) -> Option<EventReader> {
        let live = self.view(key).and_then(|view| view.log);
        live.or_else(|| self.recorded(key)).map(|log| log.reader(last_seen))
    }

    fn recorded(&self, key: &SpawnKey) -> Option<Arc<LiveLog>> {
        let last = self.context.history_of(key).last(key).filter(|last| last.ended_at.is_some())?;
        Some(LiveLog::new(ProgressLog::resumed(last.job_id, last.events, 1)))
    }

    /// The records of the lab's operations, newest first; `None` if there are none.
    pub fn history(&self, key: &SpawnKey) -> Option<Vec<OperationRecord>> {
        Some(self.context.history_of(key).operations(key)).filter(|records| !records.is_empty())
    }

    /// The record of one operation on a lab, or on what a lab has started.
    pub fn job(&self, job_id: JobId) -> Option<OperationRecord> {
        self.context.history.job(job_id).or_else(|| self.context.history_of_children.job(job_id))
    }

    /// True if this process knows the history that the leader writes, whether it leads or not.
    pub fn shares_history(&self) -> bool {
        self.context.history.is_shared()
    }

    /// Refuses a spawn that cannot begin now, whatever the policies say about it.
    pub fn can_spawn(&self, key: &SpawnKey) -> Result<(), SpawnError> {
        self.require_ready()?;
        if self.is_draining() {
            return Err(Refusal::ShuttingDown.into());
        }
        if self.context.own_cluster().health().is_away() {
            return Err(SpawnError::ClusterAway);
        }
        self.require_readable(key)?;
        match self.lab(key).and_then(|lab| refusal(lab.status)) {
            Some(refusal) => Err(refusal.into()),
            None => Ok(()),
        }
    }

    /// Starts a lab. Returns when the spawn has begun; the events report the rest.
    pub async fn spawn(&self, request: SpawnRequest) -> Result<(), SpawnError> {
        let key = SpawnKey::from(request.key.clone());
        let begun = self.begin_spawn(&key, request).await;
        self.heard(&key, begun)
    }

    async fn begin_spawn(&self, key: &SpawnKey, request: SpawnRequest) -> Result<(), SpawnError> {
        let lab = request.key.clone();
        self.can_spawn(key)?;
        let turn = self.turn_of(&lab.user).await?;
        let names = self.context.names(&lab)?;
        let so_far = self.use_beside(key);
        let approved = approve(&self.context.rules(), names, request, so_far).await?;
        // The caller asks again if a policy cannot answer now.
        workload_requests::admit(&self.context, &approved, "", &Patience::none()).await?;
        self.begin(key, approved, turn).await
    }

    /// Returns the use of the lab's user beside this lab.
    pub(crate) fn use_beside(&self, key: &SpawnKey) -> UserUse {
        let present = self.registry().use_beside(key);
        UserUse::from_history(present, &self.context.history, &key.lab.user)
    }

    /// Stops a lab. Returns when the stop has begun. `user` is set when users stop their own lab; the policies are then
    /// asked for permission. The Hub and administrators always have it. `requested_by` is the caller's name for the
    /// record.
    pub async fn stop(
        &self,
        key: &SpawnKey,
        user: Option<&Identity>,
        requested_by: &str,
    ) -> Result<(), SpawnError> {
        self.require_ready()?;
        // Policies that could not be loaded keep nobody from stopping a lab of their own.
        if let Some(identity) = user.filter(|_| self.context.policies.missing().is_none()) {
            let question = AuthorizeRequest {
                action: Action::Stop,
                user: User::from(identity),
                server: key.lab.server.to_string(),
                options: Options::new(),
                subject: self.subject(key, None),
            };
            self.heard(key, authorize(&self.context.rules(), &question).await)?;
        }
        self.require_readable(key)?;
        if self.view(key).is_none() {
            return Err(Refusal::NoLab.into());
        }
        self.ask_stop(key, StopRequest::by(requested_by)).await
    }

    /// Asks the lab's driver for a stop.
    pub(crate) async fn ask_stop(&self, key: &SpawnKey, request: StopRequest) -> Result<(), SpawnError> {
        let (reply, answer) = oneshot::channel();
        let until = answer_by();
        self.send(key, Message::Stop(request, Waiting { until, reply, cause: Cause::current(), turn: None }));
        answered(answer, until).await
    }

    /// The volume claims that a server has used; `None` when it has used none, or when claims do not outlive labs.
    pub fn volumes(&self, key: &LabKey) -> Option<VolumeRecord> {
        self.context.volumes.as_ref()?.record(key)
    }

    /// Deletes the volume claims of a server that is being deleted, except those that have to be kept.
    pub async fn release_volumes(&self, key: &LabKey) -> Result<Release, SpawnError> {
        self.require_ready()?;
        // A record that cannot be read may be that of a pool that uses the claims.
        self.require_all_readable()?;
        if self.volumes(key).is_none() {
            return Ok(Release::default());
        }
        // A pool that has outlived its lab may still use the claims.
        if self.registry().children(key).any(|(_, handle)| handle.view.borrow().snapshot.is_some()) {
            return Err(Refusal::VolumesInUse.into());
        }
        let (reply, answer) = oneshot::channel();
        self.send(&key.clone().into(), Message::Release(reply));
        answer.await.unwrap_or(Err(Refusal::VolumesInUse.into()))
    }

    /// Passes a record that the watch has shown to the lab's driver. Without a driver the record belongs to somebody
    /// else or is not accepted yet, and is ignored.
    pub(crate) fn send_record(&self, key: &SpawnKey, stored: StoredSpawn) {
        self.tell(key, Message::Record(Box::new(stored)));
    }

    /// Sends a message to the lab's driver, if it has one.
    pub(crate) fn tell(&self, key: &SpawnKey, message: Message) {
        if let Some(handle) = self.registry().get(key) {
            let _ = handle.inbox.send(Box::new(message));
        }
    }

    /// True if the lab has a driver.
    pub(crate) fn has_driver(&self, key: &SpawnKey) -> bool {
        self.registry().get(key).is_some()
    }

    /// Tells all drivers that the Kubernetes API went away or is back.
    pub(crate) fn send_health(&self, cluster: Option<&ClusterRef>, away: bool) {
        for (_, handle) in self.registry().iter() {
            let _ = handle.inbox.send(Box::new(Message::ClusterAway(cluster.cloned(), away)));
        }
    }

    /// Makes the lab's driver look at its record and plan again soon.
    pub(crate) fn request_check(&self, key: &SpawnKey) {
        self.tell(key, Message::Housekeeping);
    }

    /// Removes the oldest failed labs of a user who has more of them than labs at a time are allowed.
    pub(crate) fn forget_oldest_failures(&self, user: &Username) {
        let kept = self.context().config.current().limits.per_user.labs.get();
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        for handle in self.registry().failures_beyond(kept, user) {
            let _ = handle.inbox.send(Box::new(Message::ForgetFailure));
        }
    }

    /// Makes all drivers do their periodic work.
    pub(crate) fn housekeeping(&self) {
        for (_, handle) in self.registry().iter() {
            let _ = handle.inbox.send(Box::new(Message::Housekeeping));
        }
    }

    /// Removes an idle driver, unless a message for it has just arrived. Messages are sent under the same lock, so none
    /// is lost.
    pub(crate) fn retire(&self, key: &SpawnKey, inbox: &mpsc::UnboundedReceiver<Box<Message>>) -> bool {
        let mut registry = self.registry();
        if !inbox.is_empty() {
            return false;
        }
        registry.remove(key);
        true
    }

    /// Sends a message to a lab's driver, which is started if there is none.
    pub(crate) fn send(&self, key: &SpawnKey, message: Message) {
        let mut registry = self.registry();
        if let Some(handle) = registry.get(key) {
            // If the driver has panicked and is about to be replaced, the message is lost, and the caller is told to
            // ask again.
            let _ = handle.inbox.send(Box::new(message));
            return;
        }
        let (handle, driver) = self.driver(key);
        let _ = handle.inbox.send(Box::new(message));
        registry.insert(key.clone(), handle);
        tokio::spawn(self.clone().run(key.clone(), driver));
    }

    pub(crate) fn require_ready(&self) -> Result<(), SpawnError> {
        if self.is_ready() { Ok(()) } else { Err(SpawnError::NotReady) }
    }

    pub(crate) fn require_certain(&self) -> Result<(), SpawnError> {
        if self.is_certain() { Ok(()) } else { Err(SpawnError::NotReady) }
    }

    pub(crate) fn view(&self, key: &SpawnKey) -> Option<View> {
        self.registry().get(key).map(|handle| handle.view.borrow().clone())
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
