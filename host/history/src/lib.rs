//! The history: records of recent operations, in memory and on the service's own disk.

mod days;
mod disk;
mod entry;
mod records;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, mpsc};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use wasmspawner_core::lifecycle::{Failure, Outcome};
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::record::operation_record::OperationRecord;

use self::days::Days;
use self::disk::{Disk, Opened, Write};
use self::entry::Shared;
use self::records::HistoryRecords;

pub use self::disk::HistoryError;
pub use self::entry::HistoryEntry;

/// The most records that are kept of one lab.
const MAX_OPERATIONS_OF_LAB: usize = 100;

/// The time for which the service waits for the disk when it ends.
const FLUSH: Duration = Duration::from_secs(5);

/// The records of operations. They are read from memory; a separate thread writes changes to disk, so that no spawn
/// waits for the disk.
#[derive(Clone)]
pub struct History {
    records: Arc<RwLock<HistoryRecords>>,
    disk: Option<Disk>,
    keep: Retention,
    days: Arc<Days>,
    /// The last time at which the service was running before it was started.
    last_seen: Option<Timestamp>,
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
    /// Creates a history without a file. It is lost when the process ends.
    pub fn in_memory(keep: Retention) -> Self {
        Self { records: Arc::default(), disk: None, keep, days: Arc::default(), last_seen: None }
    }

    /// Opens or creates the history in `file`.
    pub fn open(file: &Path, keep: Retention) -> Result<Self, HistoryError> {
        let (Opened { records, days, last_seen }, disk) = disk::open(file)?;
        let days = Arc::new(Days::from_users(days));
        let history = Self { disk: Some(disk), days, last_seen, ..Self::in_memory(keep) };
        for record in records {
            let key = record.key.clone();
            history.add(&key, Shared::new(record));
        }
        Ok(history)
    }

    /// Adds the record of an operation that begins and returns a handle to it. If the operation has a record already,
    /// the handle is to that one.
    pub fn begin(&self, record: OperationRecord) -> HistoryEntry {
        if let Some(known) = self.find(&record.key, record.job_id) {
            return known;
        }
        let key = record.key.clone();
        let shared = Shared::new(record);
        self.save(&shared);
        self.add(&key, Arc::clone(&shared));
        HistoryEntry::new(self.clone(), shared)
    }

    /// The record of one operation.
    pub fn find(&self, key: &SpawnKey, job_id: JobId) -> Option<HistoryEntry> {
        let shared = self.read().operations(key).find(|known| known.job_id() == job_id).cloned()?;
        Some(HistoryEntry::new(self.clone(), shared))
    }

    /// The records of a lab, newest first.
    pub fn operations(&self, key: &SpawnKey) -> Vec<OperationRecord> {
        let shared: Vec<_> = self.read().operations(key).cloned().collect();
        shared.iter().map(|record| record.copy()).collect()
    }

    /// The newest record of a lab.
    pub fn last(&self, key: &SpawnKey) -> Option<OperationRecord> {
        let shared = self.read().operations(key).next().cloned()?;
        Some(shared.copy())
    }

    /// True while changes cannot be written to the disk. They are kept in memory until they can.
    pub fn is_failing(&self) -> bool {
        self.disk.as_ref().is_some_and(Disk::is_failing)
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Marks operations that a crash left open as failed (`Interrupted`), except those that still go on or may do so.
    pub fn close_interrupted(&self, now: Timestamp, may_go_on: impl Fn(&SpawnKey, JobId) -> bool) {
        let open = self.read().open();
        for shared in open {
            let record = shared.copy();
            if !may_go_on(&record.key, record.job_id) {
                let message = "The service ended before this operation did";
                let outcome = Outcome::Failed(Failure::service("Interrupted", message));
                HistoryEntry::new(self.clone(), shared).end(outcome, now);
            }
        }
    }

    /// Drops the records of operations that ended longer ago than `Retention::span`, and days that do not count any
    /// more.
    pub fn expire(&self, now: Timestamp) {
        self.keep_days(now);
        let Ok(oldest) = now.checked_sub(self.keep.span) else { return };
        let dropped = self.write().drop_before(oldest);
        self.forget(&dropped);
    }

    /// Waits until everything is on disk, but at most 5 s. Called when the service ends.
    pub fn flush(&self, now: Timestamp) {
        self.send_to_disk(Write::Seen(now));
        let (done, written) = mpsc::sync_channel(1);
        self.send_to_disk(Write::Flush(done));
        if self.disk.is_some() && written.recv_timeout(FLUSH).is_err() {
            tracing::error!("the newest records of the history may not have been written to the disk");
        }
    }

    /// Sends the changed record to the thread that writes the file.
    fn save(&self, shared: &Arc<Shared>) {
        self.send_to_disk(Write::Changed(Arc::clone(shared)));
    }

    /// Applies the limits and saves the record, whose operation has just ended.
    fn ended(&self, shared: &Arc<Shared>) {
        let key = shared.copy().key;
        let dropped = {
            let mut records = self.write();
            // A record that was dropped is not added again.
            if records.operations(&key).any(|known| Arc::ptr_eq(known, shared)) {
                records.end(&key, shared);
            }
            records.drop_above(&key, MAX_OPERATIONS_OF_LAB, self.keep.operations)
        };
        self.save(shared);
        self.forget(&dropped);
    }

    fn add(&self, key: &SpawnKey, shared: Arc<Shared>) {
        let dropped = {
            let mut records = self.write();
            records.add(key, shared);
            records.drop_above(key, MAX_OPERATIONS_OF_LAB, self.keep.operations)
        };
        self.forget(&dropped);
    }

    fn forget(&self, dropped: &[Arc<Shared>]) {
        for shared in dropped {
            shared.forget();
            self.save(shared);
        }
    }

    fn send_to_disk(&self, write: Write) {
        if let Some(disk) = &self.disk {
            disk.send(write);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, HistoryRecords> {
        self.records.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HistoryRecords> {
        self.records.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
