//! The record of one operation: the lab's driver writes it, others read it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;
use wasmspawner_core::lifecycle::Outcome;
use wasmspawner_core::lifecycle::progress::LoggedEntry;
use wasmspawner_core::lifecycle::stage::Finding;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::policy::compose::FieldsBySource;
use wasmspawner_core::record::operation_record::OperationRecord;

use super::History;
use super::happening::Happening;

/// A handle to the record of one operation. All handles share one record in memory; changes to it are written to the store
/// a moment later.
#[derive(Clone)]
pub struct HistoryEntry {
    history: History,
    shared: Arc<Shared>,
}

/// The record of one operation, shared by the history, the lab's driver and the store.
pub(super) struct Shared {
    record: RwLock<Record>,
    /// The version in a store that several processes write; 0 if it has none.
    revision: AtomicU64,
}

struct Record {
    operation: OperationRecord,
    /// True once the history has dropped the record. It is then deleted from the disk, even if it changes afterwards.
    forgotten: bool,
}

impl Shared {
    pub(super) fn new(operation: OperationRecord) -> Arc<Self> {
        let record = RwLock::new(Record { operation, forgotten: false });
        Arc::new(Self { record, revision: AtomicU64::default() })
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }

    pub(super) fn set_revision(&self, revision: u64) {
        self.revision.store(revision, Ordering::Relaxed);
    }

    /// Replaces the content by what another process has written.
    pub(super) fn replace(&self, operation: OperationRecord) {
        self.write().operation = operation;
    }

    /// Adds what the process that led before has written. Returns true if the record has changed, or has more than that.
    pub(super) fn add_earlier(&self, earlier: &OperationRecord) -> bool {
        let mut record = self.write();
        record.operation.add_earlier(earlier.clone());
        record.operation != *earlier
    }

    pub(super) fn job_id(&self) -> JobId {
        self.read().operation.job_id
    }

    pub(super) fn copy(&self) -> OperationRecord {
        self.read().operation.clone()
    }

    pub(super) fn ended_at(&self) -> Option<Timestamp> {
        self.read().operation.ended_at
    }

    pub(super) fn forget(&self) {
        let mut record = self.write();
        record.forgotten = true;
        // While the disk is full, what is to be deleted there is kept.
        record.operation.events = Vec::new();
    }

    /// The record as it is stored; `None` once the history has dropped it.
    pub(super) fn to_json(&self) -> Option<serde_json::Result<Vec<u8>>> {
        let record = self.read();
        (!record.forgotten).then(|| serde_json::to_vec(&record.operation))
    }

    /// The record as it is stored where it is too large as a whole.
    pub(super) fn to_json_without_events(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&OperationRecord { events: Vec::new(), ..self.copy() })
    }

    /// Reads something of the record.
    pub(super) fn get<T>(&self, read: impl FnOnce(&OperationRecord) -> T) -> T {
        read(&self.read().operation)
    }

    fn read(&self) -> RwLockReadGuard<'_, Record> {
        self.record.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Record> {
        self.record.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HistoryEntry {
    pub(super) fn new(history: History, shared: Arc<Shared>) -> Self {
        Self { history, shared }
    }

    /// A copy of the record as it is now.
    pub fn record(&self) -> OperationRecord {
        self.shared.copy()
    }

    /// Adds a log entry to the record.
    pub fn note(&self, logged: &LoggedEntry) {
        self.shared.write().operation.note(logged);
        self.history.save(&self.shared, vec![Happening::Logged(logged.clone())]);
    }

    /// Adds findings from the cluster to the record.
    pub fn note_findings(&self, findings: &[Finding], now: Timestamp) {
        let noted = self.shared.write().operation.note_findings(findings, now);
        if !noted.is_empty() {
            self.history.save(&self.shared, noted.into_iter().map(Happening::Reported).collect());
        }
    }

    /// Adds the sources that decided the fields of the lab.
    pub fn note_decisions(&self, decided_by: FieldsBySource) {
        self.shared.write().operation.decided_by = decided_by;
        self.history.save(&self.shared, Vec::new());
    }

    /// Records how the operation ended; false if that is recorded already. An ended record may be dropped in favour of
    /// newer ones.
    pub fn end(&self, outcome: Outcome, now: Timestamp) -> bool {
        {
            let mut record = self.shared.write();
            if record.operation.ended_at.is_some() {
                return false;
            }
            record.operation.end(outcome, now);
        }
        self.history.ended(&self.shared);
        true
    }
}
