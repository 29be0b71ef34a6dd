//! What happened in each operation, on the service's own disk, for a while.

mod disk;
mod entry;
mod records;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, mpsc};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use wasmspawner_core::lab::{JobId, LabKey};
use wasmspawner_core::lifecycle::{Failure, Outcome};
use wasmspawner_core::operation_record::OperationRecord;

use self::disk::Write;
use self::entry::Shared;
use self::records::Records;

pub use self::disk::HistoryError;
pub use self::entry::HistoryEntry;

/// Operations that are remembered of one lab.
const MOST_OF_ONE_LAB: usize = 100;

/// How long the end of the service waits for the disk.
const FLUSH: Duration = Duration::from_secs(5);

/// The records of operations, newest first, kept for a while. Reads come from memory; a thread of its own writes what
/// happened to the disk, so that no spawn waits for it.
#[derive(Clone)]
pub struct History {
    records: Arc<RwLock<Records>>,
    disk: Option<mpsc::Sender<Write>>,
    keep: Keep,
}

/// What is kept. The record of an operation under way always is.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// For how long after the operation's end.
    pub span: SignedDuration,
    /// How many records of all labs together, those of operations under way included.
    pub operations: usize,
}

impl History {
    /// A history that is lost with the process.
    pub fn in_memory(keep: Keep) -> Self {
        Self { records: Arc::default(), disk: None, keep }
    }

    /// Opens, or makes, the history in `file`.
    pub fn open(file: &Path, keep: Keep) -> Result<Self, HistoryError> {
        let (records, disk) = disk::open(file)?;
        let history = Self { disk: Some(disk), ..Self::in_memory(keep) };
        for record in records {
            let key = record.key.clone();
            history.add(&key, Shared::new(record));
        }
        Ok(history)
    }

    /// Keeps the record of an operation that begins, and returns where to note what happens in it. Of an operation that
    /// is known already, the record that there is.
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
    pub fn find(&self, key: &LabKey, job_id: JobId) -> Option<HistoryEntry> {
        let shared = self.read().of(key).find(|known| known.job_id() == job_id).cloned()?;
        Some(HistoryEntry::new(self.clone(), shared))
    }

    /// The records of a lab, newest first.
    pub fn of(&self, key: &LabKey) -> Vec<OperationRecord> {
        let shared: Vec<_> = self.read().of(key).cloned().collect();
        shared.iter().map(|record| record.copy()).collect()
    }

    /// The newest record of a lab.
    pub fn last(&self, key: &LabKey) -> Option<OperationRecord> {
        let shared = self.read().of(key).next().cloned()?;
        Some(shared.copy())
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes what a crash left open, but for operations that still go on: `going_on` names the one of a lab.
    pub fn close_interrupted(&self, now: Timestamp, going_on: impl Fn(&LabKey) -> Option<JobId>) {
        let open = self.read().open();
        for shared in open {
            let record = shared.copy();
            if going_on(&record.key) != Some(record.job_id) {
                let message = "The service ended before this operation did";
                let outcome = Outcome::Failed(Failure::service("Interrupted", message));
                HistoryEntry::new(self.clone(), shared).end(outcome, now);
            }
        }
    }

    /// Forgets what is too old.
    pub fn expire(&self, now: Timestamp) {
        let Ok(oldest) = now.checked_sub(self.keep.span) else { return };
        let dropped = self.write().drop_before(oldest);
        self.forget(&dropped);
    }

    /// Waits, for a while, until everything is on the disk. For the end of the service.
    pub fn flush(&self) {
        let (done, written) = mpsc::sync_channel(1);
        self.tell_disk(Write::Flush(done));
        if self.disk.is_some() && written.recv_timeout(FLUSH).is_err() {
            tracing::error!("the last of the history may not be on the disk");
        }
    }

    /// The record has changed.
    fn save(&self, shared: &Arc<Shared>) {
        self.tell_disk(Write::Changed(Arc::clone(shared)));
    }

    /// The record is of an operation that has ended just now.
    fn ended(&self, shared: &Arc<Shared>) {
        let key = shared.copy().key;
        let dropped = {
            let mut records = self.write();
            // One that was forgotten stays so.
            if records.of(&key).any(|known| Arc::ptr_eq(known, shared)) {
                records.end(&key, shared);
            }
            records.drop_above(&key, MOST_OF_ONE_LAB, self.keep.operations)
        };
        self.save(shared);
        self.forget(&dropped);
    }

    fn add(&self, key: &LabKey, shared: Arc<Shared>) {
        let dropped = {
            let mut records = self.write();
            records.add(key, shared);
            records.drop_above(key, MOST_OF_ONE_LAB, self.keep.operations)
        };
        self.forget(&dropped);
    }

    fn forget(&self, dropped: &[Arc<Shared>]) {
        for shared in dropped {
            shared.forget();
            self.save(shared);
        }
    }

    fn tell_disk(&self, write: Write) {
        if let Some(disk) = &self.disk {
            // The thread ends only with the last sender.
            let _ = disk.send(write);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Records> {
        self.records.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Records> {
        self.records.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
