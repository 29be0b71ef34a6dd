//! The history in NATS, which all processes of an installation and other programs read.
//!
//! The state of each operation is in a key-value bucket, what users have used in another, and what happens in operations in a
//! stream. Every process follows the buckets. The one that leads writes, from a bounded queue, beside everything else. What
//! a later leader has written is never replaced.

mod connection;
mod error;
mod event;
mod fence;
mod follower;
mod key;
mod login;
mod queue;
mod writer;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::{self, ErrorCode};
use bytes::Bytes;
use futures::future::join_all;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use wasmspawner_core::config::Nats;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::{LabelValue, Username};
use wasmspawner_core::record::operation_record::OperationRecord;

use self::connection::{ANSWER, Connection};
use self::error::with_causes;
use self::fence::WriterNumber;
use self::follower::{Follower, Stored};
use self::key::{Bucket, Key};
use self::queue::{Change, Queue, Ticket};
use self::writer::{Writer, Written};
use crate::entry::Shared;
use crate::happening::Happening;
use crate::memory::{Learned, Memory};
use crate::store::{Knowledge, Store, Write};

pub use self::connection::read_job;
pub use self::error::NatsError;

/// The number of changes that are written at once.
const BATCH: usize = 64;

/// The pause after a failure. It doubles with each further one, up to `MAX_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// How often old records are dropped from the memory of a process that only reads.
const EXPIRE_EVERY: Duration = Duration::from_mins(1);

/// How often a process that may not write now looks whether it may.
const MAY_WRITE_EVERY: Duration = Duration::from_millis(100);

/// The number of times that NATS may refuse a change before it is given up.
const REFUSALS: u8 = 5;

/// The status by which NATS says that a request is wrong.
const BAD_REQUEST: usize = 400;

/// The time to learn what the process has written that led before.
const TAKE_OVER: Duration = Duration::from_secs(30);

/// The new content of a change.
#[derive(Clone)]
enum Content {
    /// The record of an operation, as it is when it is written.
    Record(Arc<Shared>),
    /// What a user has used, as it is when it is written.
    Days(Username),
    /// Any other value of a key.
    Value(Bytes),
    /// A message of the stream, about this operation.
    Event(JobId, Bytes),
}

/// The store in NATS. The task that writes ends when this value is dropped.
pub(super) struct NatsStore {
    shared: Arc<Task>,
    lead: watch::Sender<Option<u64>>,
    task: AbortHandle,
}

/// What the store and its task have in common.
struct Task {
    nats: Arc<Nats>,
    instance: String,
    memory: Arc<Memory>,
    may_write: Arc<dyn Fn() -> bool + Send + Sync>,
    waiting: Mutex<Waiting>,
    /// Something waits.
    filled: Notify,
    failing: AtomicBool,
    /// The last problem that was logged, until NATS works again.
    problem: Mutex<String>,
    knowledge: watch::Sender<Knowledge>,
}

/// What waits to be written.
struct Waiting {
    queue: Queue<Content>,
    flushes: Vec<mpsc::SyncSender<()>>,
    /// The versions of the keys in the bucket of the usage.
    revisions: HashMap<Key, u64>,
}

impl NatsStore {
    pub(super) fn open(
        nats: Nats,
        instance: &LabelValue,
        memory: Arc<Memory>,
        may_write: Arc<dyn Fn() -> bool + Send + Sync>,
    ) -> Self {
        let waiting =
            Waiting { queue: Queue::new(nats.queue), flushes: Vec::new(), revisions: HashMap::new() };
        let shared = Arc::new(Task {
            nats: Arc::new(nats),
            instance: instance.to_string(),
            memory,
            may_write,
            waiting: Mutex::new(waiting),
            filled: Notify::new(),
            failing: AtomicBool::new(true),
            problem: Mutex::default(),
            knowledge: watch::Sender::new(Knowledge::Nothing),
        });
        let (lead, leads) = watch::channel(None);
        let running = Arc::clone(&shared);
        let task = tokio::spawn(async move { running.run(leads).await }).abort_handle();
        Self { shared, lead, task }
    }
}

impl Drop for NatsStore {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Store for NatsStore {
    fn send(&self, write: Write) {
        match write {
            Write::Changed(record, happenings) => {
                // Written down before the lock is taken, for which others wait.
                let changes = changes_of(&record, &happenings);
                self.shared.lock().push(changes);
            }
            Write::Days(user, _) => self.shared.lock().push([of_days(user)]),
            Write::Seen(now) if (self.shared.may_write)() => {
                self.shared.lock().push([of_value(Key::Seen, &json!(now.as_second()))]);
            }
            Write::Seen(_) => {}
            Write::Flush(done) => self.shared.flush(done),
        }
        self.shared.filled.notify_one();
    }

    fn is_failing(&self) -> bool {
        self.shared.failing.load(Ordering::Relaxed)
    }

    fn dropped(&self) -> u64 {
        self.shared.lock().queue.dropped()
    }

    fn lead(&self, number: u64) {
        self.shared.memory.begin_to_write();
        self.lead.send_replace(Some(number));
    }

    fn knowledge(&self) -> Option<watch::Receiver<Knowledge>> {
        Some(self.shared.knowledge.subscribe())
    }
}

impl Waiting {
    fn push(&mut self, changes: impl IntoIterator<Item = Change<Content>>) {
        changes.into_iter().for_each(|change| self.queue.push(change));
    }
}

/// What is written of a record that has changed.
fn changes_of(record: &Arc<Shared>, happenings: &[Happening]) -> Vec<Change<Content>> {
    let job_id = record.job_id();
    let mut changes = Vec::with_capacity(happenings.len() + 2);
    for happening in happenings {
        match record.get(|record| event::message(record, happening)) {
            Ok(message) => changes.push(Change::new(None, Content::Event(job_id, message.into()))),
            Err(error) => tracing::error!(%error, %job_id, "an event of the history cannot be written"),
        }
        if matches!(happening, Happening::Begun) {
            changes.push(record.get(|record| {
                let value = json!({ "job_id": job_id, "kind": record.kind, "started_at": record.started_at });
                of_value(Key::Lab(record.key.lab.clone()), &value)
            }));
        }
    }
    changes.push(Change::new(Some(Key::Job(job_id)), Content::Record(Arc::clone(record))));
    changes
}

fn of_days(user: Username) -> Change<Content> {
    Change::new(Some(Key::Usage(user.clone())), Content::Days(user))
}

fn of_value(key: Key, value: &serde_json::Value) -> Change<Content> {
    Change::new(Some(key), Content::Value(value.to_string().into()))
}

impl Task {
    /// Connects, reads and writes, again and again.
    async fn run(&self, mut leads: watch::Receiver<Option<u64>>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.session(&mut leads, &mut pause).await {
                Ok(never) => match never {},
                Err(error) => error,
            };
            self.fails(&error);
            sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Reads until this process leads, and writes from then on.
    async fn session(
        &self,
        leads: &mut watch::Receiver<Option<u64>>,
        pause: &mut Duration,
    ) -> Result<Infallible, NatsError> {
        let span = Duration::try_from(self.memory.keep.span).unwrap_or_default();
        let connection = Connection::open(&self.nats, &self.instance, span).await?;
        // Somebody may have made the buckets anew.
        self.lock().revisions.clear();
        let mut follower = Follower::start(&connection).await?;
        let mut greatest = WriterNumber::default();
        let mut expire = tokio::time::interval(EXPIRE_EVERY);
        let leadership = loop {
            if follower.is_current() {
                self.knows(Knowledge::Follows);
                self.works();
                *pause = FIRST_PAUSE;
            }
            let begun = async { leads.wait_for(Option::is_some).await.ok().and_then(|number| *number) };
            tokio::select! {
                leadership = begun => match leadership {
                    Some(leadership) => break leadership,
                    // The store is gone, and this task is about to be.
                    None => std::future::pending().await,
                },
                stored = follower.next() => self.learn(stored?, &mut greatest),
                _ = expire.tick() => drop(self.memory.expire(Timestamp::now())),
                () = lost(&connection), if follower.is_current() => self.follow_again(&connection).await,
            }
        };
        let taken_over = self.take_over(&connection, &mut follower, leadership, &mut greatest);
        timeout(TAKE_OVER, taken_over)
            .await
            .map_err(|_| NatsError::TimedOut { action: "take over the history" })??;
        drop(follower);
        self.memory.days.complete();
        self.push_unstored_days();
        let writer = Writer::new(connection, WriterNumber::of_leader(leadership, greatest));
        self.knows(Knowledge::Complete);
        self.works();
        self.write_all(&writer, pause).await
    }

    /// Waits until a connection that was lost is there again. The library then goes on reading where it was.
    async fn follow_again(&self, connection: &Connection) {
        self.fails(&NatsError::jetstream("follow the buckets", "the connection is lost"));
        while connection.client.connection_state() != State::Connected {
            sleep(MAY_WRITE_EVERY).await;
        }
    }

    /// Learns everything that was written before this process led. It notes in both buckets that it writes now, and reads up
    /// to that.
    async fn take_over(
        &self,
        connection: &Connection,
        follower: &mut Follower,
        leadership: u64,
        greatest: &mut WriterNumber,
    ) -> Result<(), NatsError> {
        self.until_allowed().await;
        let note = json!({ "leadership": leadership, "since": Timestamp::now() }).to_string();
        let mut until = Vec::new();
        for bucket in [Bucket::Jobs, Bucket::Usage] {
            let subject = connection.subject(bucket, &Key::Leader);
            let failed = |error| NatsError::jetstream("note who leads", error);
            let answer = connection.jetstream.publish(subject, note.clone().into()).await.map_err(failed)?;
            until.push((bucket, answer.await.map_err(failed)?.sequence));
        }
        while !until.is_empty() {
            let stored = follower.next().await?;
            let (bucket, revision) = (stored.bucket, stored.revision);
            self.learn(stored, greatest);
            until.retain(|(of, last)| *of != bucket || revision < *last);
        }
        Ok(())
    }

    /// Takes over an entry.
    fn learn(&self, stored: Stored, greatest: &mut WriterNumber) {
        *greatest = stored.writer.max(*greatest);
        let Some(key) = stored.key else { return };
        if key.bucket() == Bucket::Usage {
            self.lock().revisions.insert(key.clone(), stored.revision);
        }
        let unreadable = |error: &serde_json::Error| {
            tracing::warn!(%error, key = key.name(), "an entry of another version is left out of the history");
        };
        match (&key, stored.value.as_deref()) {
            (Key::Job(job_id), Some(value)) => match serde_json::from_slice(value) {
                Ok(record) => self.learn_record(*job_id, record, stored.revision),
                Err(error) => unreadable(&error),
            },
            (Key::Usage(user), value) => match value.map(serde_json::from_slice).transpose() {
                Ok(days) => {
                    if self.memory.days.learn(user, days) {
                        self.lock().push([of_days(user.clone())]);
                    }
                }
                Err(error) => unreadable(&error),
            },
            (Key::Seen, Some(value)) => {
                let at = serde_json::from_slice(value).ok();
                self.memory.learn_last_seen(at.and_then(|at| Timestamp::from_second(at).ok()));
            }
            (Key::Job(_) | Key::Seen, None) | (Key::Lab(_) | Key::Leader, _) => {}
        }
    }

    fn learn_record(&self, job_id: JobId, record: OperationRecord, revision: u64) {
        if record.job_id == job_id
            && let Learned::Unsaved(record) = self.memory.learn(record, revision)
        {
            self.lock().push(changes_of(&record, &[]));
        }
    }

    /// Tells whoever waits once everything is written.
    fn flush(&self, done: mpsc::SyncSender<()>) {
        let may_write = (self.may_write)();
        let mut waiting = self.lock();
        if waiting.queue.is_empty() && !may_write {
            // A process that has not led has nothing to write.
            let _ = done.try_send(());
        } else if may_write && !self.failing.load(Ordering::Relaxed) {
            waiting.flushes.push(done);
        }
        // Otherwise `done` is dropped, which says at once that it is in vain.
    }

    /// Queues what the memory has of users of whom the bucket has nothing.
    fn push_unstored_days(&self) {
        let users = self.memory.days.users();
        let mut waiting = self.lock();
        for user in users {
            if !waiting.revisions.contains_key(&Key::Usage(user.clone())) {
                waiting.push([of_days(user)]);
            }
        }
    }

    /// Writes what waits, in groups. What fails is tried again.
    async fn write_all(&self, writer: &Writer, pause: &mut Duration) -> Result<Infallible, NatsError> {
        let mut is_told = false;
        loop {
            let batch = self.next_batch().await;
            self.until_allowed().await;
            let connected = writer.connection.client.connection_state() == State::Connected;
            let fates: Vec<_> = if connected {
                join_all(batch.iter().map(|(ticket, change)| self.write(writer, *ticket, change))).await
            } else {
                let lost = || NatsError::jetstream("write the history", "the connection is lost");
                batch.iter().map(|_| Err(lost())).collect()
            };
            let (mut failed, mut is_refused) = (None, false);
            for ((ticket, change), fate) in batch.into_iter().zip(fates) {
                match fate {
                    Ok(written) => self.note_fate(&change, &written),
                    Err(error) if is_refusal(&error) => {
                        is_refused = true;
                        if !self.lock().queue.put_last(change, REFUSALS)
                            && !std::mem::replace(&mut is_told, true)
                        {
                            let error = with_causes(&error);
                            tracing::error!(error, "NATS refuses a part of the history, which is left out");
                        }
                    }
                    Err(error) => {
                        self.lock().queue.put_back(ticket, change);
                        failed = Some(error);
                    }
                }
            }
            let Some(error) = failed else {
                *pause = FIRST_PAUSE;
                self.works();
                if is_refused {
                    sleep(*pause).await;
                }
                continue;
            };
            if writer.connection.client.connection_state() == State::Connected && is_gone(&error) {
                // Somebody has deleted a bucket or the stream. It is made again.
                return Err(error);
            }
            self.fails(&error);
            sleep(*pause).await;
            *pause = (*pause * 2).min(MAX_PAUSE);
        }
    }

    /// Waits for changes. Those who wait for all of them are told when there are none.
    async fn next_batch(&self) -> Vec<(Ticket, Change<Content>)> {
        loop {
            {
                let mut waiting = self.lock();
                if !waiting.queue.is_empty() {
                    return waiting.queue.take(BATCH);
                }
                for done in waiting.flushes.drain(..) {
                    // This fails when the caller of `flush` has stopped waiting.
                    let _ = done.try_send(());
                }
            }
            self.filled.notified().await;
        }
    }

    async fn write(
        &self,
        writer: &Writer,
        ticket: Ticket,
        change: &Change<Content>,
    ) -> Result<Written, NatsError> {
        let within = async {
            match (&change.content, &change.key) {
                (Content::Event(job_id, message), _) => {
                    writer.add(writer.connection.event_subject(job_id), ticket, message.clone()).await
                }
                (Content::Record(record), Some(key)) => match record.to_json() {
                    Some(Ok(value)) => match writer.put(key, Some(value.into()), record.revision()).await? {
                        Written::TooLarge => self.write_without_events(writer, key, record).await,
                        written => Ok(written),
                    },
                    Some(Err(error)) => {
                        tracing::error!(%error, key = key.name(), "a record cannot be written down");
                        Ok(Written::TooLarge)
                    }
                    // The entry expires by itself.
                    None => Ok(Written::At(record.revision())),
                },
                (Content::Value(value), Some(key)) => {
                    let known = self.lock().revisions.get(key).copied().unwrap_or_default();
                    writer.put(key, Some(value.clone()), known).await
                }
                (Content::Days(user), Some(key)) => {
                    let known = self.lock().revisions.get(key).copied().unwrap_or_default();
                    match self.memory.days.days_of(user).map(|days| serde_json::to_vec(&days)).transpose() {
                        Ok(value) => writer.put(key, value.map(Bytes::from), known).await,
                        Err(error) => {
                            tracing::error!(%error, key = key.name(), "the use of a user cannot be written down");
                            Ok(Written::TooLarge)
                        }
                    }
                }
                (Content::Record(_) | Content::Days(_) | Content::Value(_), None) => Ok(Written::TooLarge),
            }
        };
        let late = |_| NatsError::TimedOut { action: "write the history" };
        timeout(ANSWER * 2, within).await.map_err(late)?
    }

    /// Writes what matters most of a record that is too large.
    async fn write_without_events(
        &self,
        writer: &Writer,
        key: &Key,
        record: &Shared,
    ) -> Result<Written, NatsError> {
        tracing::warn!(
            key = key.name(),
            "a record of the history is too large for NATS; it is written without its events"
        );
        match record.to_json_without_events() {
            Ok(value) => writer.put(key, Some(value.into()), record.revision()).await,
            Err(error) => {
                tracing::error!(%error, key = key.name(), "a record cannot be written down");
                Ok(Written::TooLarge)
            }
        }
    }

    fn note_fate(&self, change: &Change<Content>, written: &Written) {
        match (written, &change.content, &change.key) {
            (Written::At(revision), Content::Record(record), _) => record.set_revision(*revision),
            (Written::At(revision), Content::Value(_) | Content::Days(_), Some(key))
                if key.bucket() == Bucket::Usage =>
            {
                self.lock().revisions.insert(key.clone(), *revision);
            }
            (Written::At(_), ..) => {}
            (Written::Superseded, ..) => {
                let key = change.key.as_ref().map(Key::name);
                tracing::warn!(
                    key,
                    "a later leader has written an entry of the history, which stays as it is"
                );
            }
            (Written::TooLarge, ..) => {
                let key = change.key.as_ref().map(Key::name);
                tracing::error!(
                    key,
                    "an entry of the history is too large for NATS (max_payload); it is left out"
                );
                self.lock().queue.give_up();
            }
        }
    }

    /// Waits until this process may write.
    async fn until_allowed(&self) {
        while !(self.may_write)() {
            self.lock().flushes.clear();
            sleep(MAY_WRITE_EVERY).await;
        }
    }

    fn knows(&self, knowledge: Knowledge) {
        self.knowledge.send_if_modified(|known| {
            // What was complete stays complete when the connection is made anew.
            let is_more = *known < knowledge;
            *known = (*known).max(knowledge);
            is_more
        });
    }

    fn works(&self) {
        if self.failing.swap(false, Ordering::Relaxed) {
            tracing::info!("the history is in NATS");
            self.lock_problem().clear();
        }
    }

    fn fails(&self, error: &NatsError) {
        self.failing.store(true, Ordering::Relaxed);
        let text = with_causes(error);
        let mut known = self.lock_problem();
        if *known != text {
            tracing::error!(
                error = text,
                "the history cannot be written to NATS; it is kept in memory, and tried again"
            );
            *known = text;
        }
        drop(known);
        self.lock().flushes.clear();
    }

    fn lock_problem(&self) -> MutexGuard<'_, String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the connection is lost.
async fn lost(connection: &Connection) {
    while connection.client.connection_state() == State::Connected {
        sleep(MAY_WRITE_EVERY).await;
    }
}

/// True if what is to be written to does not exist any more.
fn is_gone(error: &NatsError) -> bool {
    publish_error(error).is_some_and(|error| error.kind() == PublishErrorKind::StreamNotFound)
}

/// True if NATS takes this change in particular for wrong, so that it says the same next time. A store that is full or has no
/// leader now takes it later.
fn is_refusal(error: &NatsError) -> bool {
    let answer = publish_error(error).and_then(std::error::Error::source);
    answer.and_then(|answer| answer.downcast_ref::<jetstream::Error>()).is_some_and(|answer| {
        answer.code() == BAD_REQUEST && answer.error_code() != ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
    })
}

fn publish_error(error: &NatsError) -> Option<&PublishError> {
    let NatsError::JetStream { source, .. } = error else { return None };
    source.downcast_ref()
}
