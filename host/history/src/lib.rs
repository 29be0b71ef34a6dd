//! The history: records of recent operations, in memory and in a store that outlives the process.

mod days;
mod disk;
mod entry;
mod happening;
mod memory;
mod nats;
mod records;
mod store;

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use wasmspawner_core::config::Nats;
use wasmspawner_core::lifecycle::progress::{Entry, LoggedEntry, StageReport};
use wasmspawner_core::lifecycle::{Failure, Outcome};
use wasmspawner_core::names::LabelValue;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::record::operation_record::OperationRecord;

use self::disk::Opened;
use self::entry::Shared;
use self::happening::Happening;
use self::memory::Memory;
use self::nats::NatsStore;
use self::store::{Knowledge, Store, Write};

pub use self::disk::HistoryError;
pub use self::entry::HistoryEntry;
pub use self::nats::{NatsError, read_job};

/// The most records that are kept of one lab.
const MAX_OPERATIONS_OF_LAB: usize = 100;

/// The time for which the service waits for the store when it ends.
const FLUSH: Duration = Duration::from_secs(5);

/// The records of operations. They are read from memory; the store is written beside that, so that no spawn waits for it.
#[derive(Clone)]
pub struct History {
    memory: Arc<Memory>,
    /// `None`: the history is lost when the process ends.
    store: Option<Arc<dyn Store>>,
}

/// The limits on the age and the number of records. The record of an operation under way is always kept.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// The time for which a record is kept after the operation's end.
    pub span: SignedDuration,
    /// The most records of all labs together, including those of operations under way.
    pub operations: usize,
}

impl History {
    /// Creates a history without a store. It is lost when the process ends.
    pub fn in_memory(keep: Retention) -> Self {
        Self { memory: Arc::new(Memory::new(keep)), store: None }
    }

    /// Opens or creates the history in `file`.
    pub fn open(file: &Path, keep: Retention) -> Result<Self, HistoryError> {
        let (Opened { records, days, last_seen }, disk) = disk::open(file)?;
        let history = Self { store: Some(Arc::new(disk)), ..Self::in_memory(keep) };
        history.memory.learn_last_seen(last_seen);
        for (user, days) in days {
            history.memory.days.learn(&user, Some(days));
        }
        for record in records {
            history.add(Shared::new(record));
        }
        Ok(history)
    }

    /// Opens the history of an installation in NATS, beside this call. This process writes once it leads (see
    /// [`Self::lead`]) and `may_write` says so. Must be called in a runtime of tokio.
    pub fn in_nats(
        nats: Nats,
        instance: &LabelValue,
        keep: Retention,
        may_write: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        let memory = Arc::new(Memory::new(keep));
        let store = NatsStore::open(nats, instance, Arc::clone(&memory), Arc::new(may_write));
        Self { memory, store: Some(Arc::new(store)) }
    }

    /// Tells the history that this process leads: it writes from now on. `number` is greater than those of all earlier
    /// leaders, or 0 where there is only one process.
    pub fn lead(&self, number: u64) {
        if let Some(store) = &self.store {
            store.lead(number);
        }
    }

    /// Waits until the memory has everything that earlier leaders have written. It does not while the store is away.
    pub async fn complete(&self) {
        let Some(mut knowledge) = self.store.as_ref().and_then(|store| store.knowledge()) else { return };
        // The sender lives as long as the store.
        let _ = knowledge.wait_for(|knowledge| *knowledge == Knowledge::Complete).await;
    }

    /// True if this process knows what the one that leads has written, even if it does not lead itself.
    pub fn is_shared(&self) -> bool {
        let Some(store) = &self.store else { return false };
        store.knowledge().is_some_and(|now| *now.borrow() >= Knowledge::Follows) && !store.is_failing()
    }

    /// Adds the record of an operation that begins and returns a handle to it. If the operation has a record already,
    /// the handle is to that one.
    pub fn begin(&self, record: OperationRecord) -> HistoryEntry {
        if let Some(known) = self.find(&record.key, record.job_id) {
            return known;
        }
        let shared = Shared::new(record);
        self.save(&shared, vec![Happening::Begun]);
        self.add(Arc::clone(&shared));
        HistoryEntry::new(self.clone(), shared)
    }

    /// The record of one operation of a lab.
    pub fn find(&self, key: &SpawnKey, job_id: JobId) -> Option<HistoryEntry> {
        let shared = self.memory.read().operations(key).find(|known| known.job_id() == job_id).cloned()?;
        Some(HistoryEntry::new(self.clone(), shared))
    }

    /// The record of one operation.
    pub fn job(&self, job_id: JobId) -> Option<OperationRecord> {
        let shared = self.memory.read().find(job_id).cloned()?;
        Some(shared.copy())
    }

    /// The records of a lab, newest first.
    pub fn operations(&self, key: &SpawnKey) -> Vec<OperationRecord> {
        let shared: Vec<_> = self.memory.read().operations(key).cloned().collect();
        shared.iter().map(|record| record.copy()).collect()
    }

    /// The newest record of a lab.
    pub fn last(&self, key: &SpawnKey) -> Option<OperationRecord> {
        let shared = self.memory.read().operations(key).next().cloned()?;
        Some(shared.copy())
    }

    /// True while changes cannot be written to the store. They are kept in memory until they can.
    pub fn is_failing(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.is_failing())
    }

    /// The number of changes that were never written to the store, because too many waited.
    pub fn dropped(&self) -> u64 {
        self.store.as_ref().map_or(0, |store| store.dropped())
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.memory.read().len()
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Marks operations that a crash left open as failed (`Interrupted`), except those that still go on or may do so.
    pub fn close_interrupted(&self, now: Timestamp, may_go_on: impl Fn(&SpawnKey, JobId) -> bool) {
        let open = self.memory.read().open();
        for shared in open {
            let record = shared.copy();
            if may_go_on(&record.key, record.job_id) {
                continue;
            }
            let failure = Failure::service("Interrupted", "The service ended before this operation did");
            let entry = HistoryEntry::new(self.clone(), shared);
            let entries =
                [Entry::Stage(StageReport::failed(&failure, now)), Entry::Failed(failure.message.clone())];
            let next = record.events.last().map_or(1, |last| last.number.saturating_add(1));
            for (number, logged) in (next..).zip(entries) {
                entry.note(&LoggedEntry { number, at: now, entry: logged });
            }
            entry.end(Outcome::Failed(failure), now);
        }
    }

    /// Drops the records of operations that ended longer ago than `Retention::span`, and days that do not count any
    /// more.
    pub fn expire(&self, now: Timestamp) {
        self.keep_days(now);
        let dropped = self.memory.expire(now);
        self.save_dropped(&dropped);
    }

    /// Waits until everything is in the store, but at most 5 s. Called when the service ends.
    pub fn flush(&self, now: Timestamp) {
        self.send(Write::Seen(now));
        let (done, written) = mpsc::sync_channel(1);
        self.send(Write::Flush(done));
        if self.store.is_some() && written.recv_timeout(FLUSH).is_err() {
            tracing::error!("the newest records of the history may not have been written to its store");
        }
    }

    /// Sends the changed record to the store, with what has happened.
    fn save(&self, shared: &Arc<Shared>, happenings: Vec<Happening>) {
        self.send(Write::Changed(Arc::clone(shared), happenings));
    }

    /// Applies the limits and saves the record, whose operation has just ended.
    fn ended(&self, shared: &Arc<Shared>) {
        let key = shared.copy().key;
        let dropped = {
            let mut records = self.memory.write();
            // A record that was dropped is not added again.
            if records.operations(&key).any(|known| Arc::ptr_eq(known, shared)) {
                records.end(&key, shared);
            }
            records.drop_above(&key, MAX_OPERATIONS_OF_LAB, self.memory.keep.operations)
        };
        self.save(shared, vec![Happening::Ended]);
        memory::forget(&dropped);
        self.save_dropped(&dropped);
    }

    fn add(&self, shared: Arc<Shared>) {
        let dropped = self.memory.add(shared);
        memory::forget(&dropped);
        self.save_dropped(&dropped);
    }

    fn save_dropped(&self, dropped: &[Arc<Shared>]) {
        for shared in dropped {
            self.save(shared, Vec::new());
        }
    }

    fn send(&self, write: Write) {
        if let Some(store) = &self.store {
            store.send(write);
        }
    }
}

#[cfg(test)]
mod tests;
