//! The history in memory, from which it is read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;
use wasmspawner_core::record::operation_record::OperationRecord;

use super::days::Days;
use super::entry::Shared;
use super::records::HistoryRecords;
use super::{MAX_OPERATIONS_OF_LAB, Retention};

/// The records and the use of users.
pub(super) struct Memory {
    records: RwLock<HistoryRecords>,
    pub(super) days: Days,
    /// The last time at which the service was running before this process led.
    last_seen: RwLock<Option<Timestamp>>,
    pub(super) keep: Retention,
    /// True if this process writes, so that what it knows counts more than what is stored.
    writes: AtomicBool,
}

/// What a store has of one operation, compared with the memory.
pub(super) enum Learned {
    /// The memory has it now.
    Known,
    /// The memory has more than the store.
    Unsaved(Arc<Shared>),
}

impl Memory {
    pub(super) fn new(keep: Retention) -> Self {
        Self {
            records: RwLock::default(),
            days: Days::default(),
            last_seen: RwLock::default(),
            keep,
            writes: AtomicBool::default(),
        }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, HistoryRecords> {
        self.records.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, HistoryRecords> {
        self.records.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, what this process knows counts more than what is stored.
    pub(super) fn begin_to_write(&self) {
        self.writes.store(true, Ordering::Relaxed);
        self.days.begin_to_count();
    }

    fn writes(&self) -> bool {
        self.writes.load(Ordering::Relaxed)
    }

    /// Adds a record. Returns the records that had to go, because there are too many.
    pub(super) fn add(&self, shared: Arc<Shared>) -> Vec<Arc<Shared>> {
        let key = shared.copy().key;
        let mut records = self.write();
        records.add(&key, shared);
        records.drop_above(&key, MAX_OPERATIONS_OF_LAB, self.keep.operations)
    }

    /// Takes over a record that is stored, with the number of its version there.
    pub(super) fn learn(&self, record: OperationRecord, revision: u64) -> Learned {
        let known = self.read().find(record.job_id).cloned();
        let Some(known) = known else {
            let shared = Shared::new(record);
            shared.set_revision(revision);
            forget(&self.add(shared));
            return Learned::Known;
        };
        known.set_revision(revision);
        if self.writes() {
            return if known.add_earlier(&record) { Learned::Unsaved(known) } else { Learned::Known };
        }
        let key = record.key.clone();
        known.replace(record);
        self.write().end(&key, &known);
        Learned::Known
    }

    /// Drops what ended too long ago. Returns the dropped records.
    pub(super) fn expire(&self, now: Timestamp) -> Vec<Arc<Shared>> {
        let Ok(oldest) = now.checked_sub(self.keep.span) else { return Vec::new() };
        let dropped = self.write().drop_before(oldest);
        forget(&dropped);
        dropped
    }

    pub(super) fn last_seen(&self) -> Option<Timestamp> {
        *self.last_seen.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn learn_last_seen(&self, at: Option<Timestamp>) {
        *self.last_seen.write().unwrap_or_else(PoisonError::into_inner) = at;
    }
}

pub(super) fn forget(dropped: &[Arc<Shared>]) {
    for shared in dropped {
        shared.forget();
    }
}
