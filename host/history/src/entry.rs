//! The record of one operation: the lab's driver writes it, others read it.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;
use wasmspawner_core::lifecycle::Outcome;
use wasmspawner_core::lifecycle::progress::LoggedEntry;
use wasmspawner_core::lifecycle::stage::Finding;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::policy::compose::FieldsBySource;
use wasmspawner_core::record::operation_record::OperationRecord;

use super::History;

/// A handle to the record of one operation. All handles share one record in memory; changes to it are written to disk a
/// moment later.
#[derive(Clone)]
pub struct HistoryEntry {
    history: History,
    shared: Arc<Shared>,
}

/// The record of one operation, shared by the history, the lab's driver and the thread that writes to disk.
pub(super) struct Shared {
    record: RwLock<Record>,
}

struct Record {
    operation: OperationRecord,
    /// True once the history has dropped the record. It is then deleted from disk too, even if it changes afterwards.
    forgotten: bool,
}

impl Shared {
    pub(super) fn new(operation: OperationRecord) -> Arc<Self> {
        Arc::new(Self { record: RwLock::new(Record { operation, forgotten: false }) })
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

    /// The record's key on disk, and its bytes; `None` once the history has dropped it.
    pub(super) fn on_disk(&self) -> (String, Option<serde_json::Result<Vec<u8>>>) {
        let record = self.read();
        let bytes = (!record.forgotten).then(|| serde_json::to_vec(&record.operation));
        (record.operation.job_id.to_string(), bytes)
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
        self.history.save(&self.shared);
    }

    /// Adds findings from the cluster to the record.
    pub fn note_findings(&self, findings: &[Finding], now: Timestamp) {
        if self.shared.write().operation.note_findings(findings, now) {
            self.history.save(&self.shared);
        }
    }

    /// Adds the sources that decided the fields of the lab.
    pub fn note_decisions(&self, decided_by: FieldsBySource) {
        self.shared.write().operation.decided_by = decided_by;
        self.history.save(&self.shared);
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
