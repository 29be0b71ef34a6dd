//! All labs: who asks for one finds its driver here.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};
use wasmspawner_core::form::{Form, FormContext, render};
use wasmspawner_core::identity::Identity;
use wasmspawner_core::lab::LabKey;
use wasmspawner_core::lifecycle::{LabStatus, Refusal};
use wasmspawner_core::names::ServerName;
use wasmspawner_core::policy::{Action, AuthorizeRequest, Options, User};
use wasmspawner_core::progress::{EventId, OperationRecord, ProgressLog};
use wasmspawner_core::spawn::SpawnRequest;
use wasmspawner_core::volumes::{Release, VolumeRecord};

use super::driver::Driver;
use super::errors::SpawnError;
use super::evaluate::{approve, authorize};
use super::live_log::{EventReader, LiveLog};
use super::message::{Message, Seen};
use super::policy_report::PolicyReport;
use super::recovered::Recovered;
use super::site::Site;
use super::snapshot::LabSnapshot;
use super::turns::Turns;
use super::view::View;
use super::world::Footprint;
use crate::wasm::LoadError;

/// All labs. Cheap to clone; reads come from memory and never wait.
#[derive(Clone)]
pub struct Labs {
    site: Arc<Site>,
    table: Arc<Mutex<Table>>,
    ready: Arc<AtomicBool>,
    turns: Turns,
}

#[derive(Default)]
struct Table {
    labs: HashMap<LabKey, Handle>,
    /// Which labs are in which namespace: events say no more.
    residents: HashMap<String, HashSet<LabKey>>,
}

struct Handle {
    inbox: mpsc::UnboundedSender<Message>,
    view: watch::Receiver<View>,
}

impl Labs {
    /// No labs yet; not ready until those of the cluster are known.
    pub fn new(site: Arc<Site>) -> Self {
        Self { site, table: Arc::default(), ready: Arc::default(), turns: Turns::default() }
    }

    /// What every driver works with.
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// False until the labs of the cluster are known: before that, "no such lab" would be a guess.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// The labs of the cluster are known.
    pub(super) fn mark_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Every lab and where in its life it is, sorted.
    pub fn list(&self) -> Vec<(LabKey, LabStatus)> {
        let table = self.table();
        let mut labs: Vec<_> = table
            .labs
            .iter()
            .filter_map(|(key, handle)| {
                handle.view.borrow().snapshot.as_ref().map(|lab| (key.clone(), lab.status))
            })
            .collect();
        labs.sort();
        labs
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
        let last = self.site.history.of(key).into_iter().next().filter(|last| last.ended_at.is_some())?;
        Some(LiveLog::new(ProgressLog::restored(last.job_id, last.events.clone())))
    }

    /// The records of the lab's operations, newest first; nothing when there are none.
    pub fn history(&self, key: &LabKey) -> Option<Vec<Arc<OperationRecord>>> {
        Some(self.site.history.of(key)).filter(|records| !records.is_empty())
    }

    /// Starts a lab. Returns when it has begun; the log tells the rest.
    pub async fn spawn(&self, request: SpawnRequest) -> Result<(), SpawnError> {
        self.known()?;
        let key = request.key.clone();
        if let Some(refusal) = self.lab(&key).and_then(|lab| refusal(lab.status)) {
            return Err(refusal.into());
        }
        // Of two spawns of one user the second counts the first.
        let _turn = self.turns.of(&key.user).await;
        let labs = self.other_labs(&key);
        let approved = approve(self.site.rules(), self.site.names(&key)?, request, labs).await?;
        let (reply, answer) = oneshot::channel();
        self.tell(&key, Message::Spawn(Box::new(approved), reply));
        answer.await.unwrap_or(Err(Refusal::StopInProgress)).map_err(SpawnError::from)
    }

    /// Stops a lab. Returns when that has begun. `user` is who asks for their own lab, and the policies are asked
    /// whether they may; the Hub and administrators always may.
    pub async fn stop(&self, key: &LabKey, user: Option<&Identity>) -> Result<(), SpawnError> {
        self.known()?;
        if let Some(identity) = user {
            let question = AuthorizeRequest {
                action: Action::Stop,
                user: User::from(identity),
                server: key.server.to_string(),
                options: Options::new(),
            };
            authorize(self.site.rules(), &question).await?;
        }
        if self.view(key).is_none() {
            return Err(Refusal::NoLab.into());
        }
        let (reply, answer) = oneshot::channel();
        self.tell(key, Message::Stop(reply));
        answer.await.unwrap_or(Err(Refusal::NoLab)).map_err(SpawnError::from)
    }

    /// The volumes that a server is remembered to use; nothing when it has used none, or none outlives its lab.
    pub fn volumes(&self, key: &LabKey) -> Option<VolumeRecord> {
        self.site.volumes.as_ref()?.of(key)
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
        let form = match self.site.policies.render_form(&context).await? {
            Some(answer) => answer.value,
            None => Form::Fields(Vec::new()),
        };
        Ok(render(&form))
    }

    /// The loaded policies, in the order in which they are asked.
    pub fn policies(&self) -> Vec<PolicyReport> {
        self.site.policies.loaded().into_iter().map(|loaded| PolicyReport::new(loaded, &self.site)).collect()
    }

    /// Loads all policies anew, or none of them.
    pub async fn reload_policies(&self) -> Result<(), LoadError> {
        self.site.policies.reload().await
    }

    /// Takes over a lab that a restart found.
    pub(super) fn adopt(&self, key: LabKey, recovered: Recovered) {
        self.settle(&key, &recovered.place.namespace);
        let mut table = self.table();
        table.labs.entry(key).or_insert_with_key(|key| {
            let (handle, driver) = self.driver(key);
            tokio::spawn(driver.adopt(recovered).run());
            handle
        });
    }

    /// Failed labs look again at what could not be cleaned.
    pub(super) fn retry_cleanups(&self) {
        for handle in self.table().labs.values() {
            if handle.view.borrow().snapshot.as_ref().is_some_and(|lab| lab.status == LabStatus::Failed) {
                let _ = handle.inbox.send(Message::Reconcile);
            }
        }
    }

    /// What the lab is known to have in the cluster.
    pub(super) fn footprint(&self, key: &LabKey) -> Option<Footprint> {
        self.view(key).map(|view| view.footprint)
    }

    /// What every lab is known to have in the cluster.
    pub(super) fn footprints(&self) -> Vec<(LabKey, Footprint)> {
        self.table()
            .labs
            .iter()
            .map(|(key, handle)| (key.clone(), handle.view.borrow().footprint.clone()))
            .collect()
    }

    /// True if the lab has a driver.
    pub(super) fn has(&self, key: &LabKey) -> bool {
        self.table().labs.get(key).is_some_and(|handle| !handle.inbox.is_closed())
    }

    /// Tells a lab what a watch shows of it; a lab that nobody knows is none of our business.
    pub(super) fn show(&self, key: &LabKey, seen: Seen) {
        if let Some(handle) = self.table().labs.get(key) {
            let _ = handle.inbox.send(Message::Seen(seen));
        }
    }

    /// The labs in a namespace.
    pub(super) fn residents(&self, namespace: &str) -> Vec<LabKey> {
        self.table().residents.get(namespace).map(|keys| keys.iter().cloned().collect()).unwrap_or_default()
    }

    /// The lab is, or will be, in this namespace.
    pub(super) fn settle(&self, key: &LabKey, namespace: &str) {
        self.table().residents.entry(namespace.to_owned()).or_default().insert(key.clone());
    }

    /// Lets an idle driver go, unless somebody has just written to it. Messages are sent under the same lock, so none
    /// is lost.
    pub(super) fn retire(&self, key: &LabKey, inbox: &mpsc::UnboundedReceiver<Message>) -> bool {
        let mut table = self.table();
        if !inbox.is_empty() {
            return false;
        }
        table.labs.remove(key);
        table.residents.retain(|_, keys| {
            keys.remove(key);
            !keys.is_empty()
        });
        true
    }

    /// Writes to a lab's driver, which is started when there is none.
    fn tell(&self, key: &LabKey, message: Message) {
        let mut table = self.table();
        // A driver ends by retiring, which takes it out of the table; one that panicked is replaced.
        if table.labs.get(key).is_some_and(|handle| handle.inbox.is_closed()) {
            table.labs.remove(key);
        }
        let handle = table.labs.entry(key.clone()).or_insert_with(|| {
            let (handle, driver) = self.driver(key);
            tokio::spawn(driver.run());
            handle
        });
        let _ = handle.inbox.send(message);
    }

    fn driver(&self, key: &LabKey) -> (Handle, Driver) {
        let (inbox, messages) = mpsc::unbounded_channel();
        let (publish, view) = watch::channel(View::default());
        (
            Handle { inbox, view },
            Driver::new(key.clone(), Arc::clone(&self.site), self.clone(), messages, publish),
        )
    }

    fn known(&self) -> Result<(), SpawnError> {
        if self.is_ready() { Ok(()) } else { Err(SpawnError::NotReady) }
    }

    /// Labs that the user has beside this one, failed ones not counted.
    fn other_labs(&self, asked: &LabKey) -> u32 {
        let table = self.table();
        let of_user = table.labs.iter().filter(|(key, handle)| {
            let counts = |lab: &Arc<LabSnapshot>| lab.status != LabStatus::Failed;
            key.user == asked.user
                && **key != *asked
                && handle.view.borrow().snapshot.as_ref().is_some_and(counts)
        });
        u32::try_from(of_user.count()).unwrap_or(u32::MAX)
    }

    fn view(&self, key: &LabKey) -> Option<View> {
        self.table().labs.get(key).map(|handle| handle.view.borrow().clone())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
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
