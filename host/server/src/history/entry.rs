//! The record of one operation: its driver writes it, others read it.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;
use wasmspawner_core::lab::JobId;
use wasmspawner_core::lifecycle::Outcome;
use wasmspawner_core::operation_record::OperationRecord;
use wasmspawner_core::progress::LoggedEntry;
use wasmspawner_core::stage::Finding;

use super::History;

/// The record of one operation, in the history for as long as that keeps it. What is noted is appended to the one record
/// that there is; the disk gets it a moment later.
#[derive(Clone)]
pub struct HistoryEntry {
    history: History,
    shared: Arc<Shared>,
}

/// What the history, the driver and the thread that writes to the disk have of one operation.
pub(super) struct Shared {
    record: RwLock<Record>,
}

struct Record {
    operation: OperationRecord,
    /// The history has dropped it: it goes from the disk too, whatever is noted afterwards.
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
        self.write().forgotten = true;
    }

    /// The record's key on the disk, and its bytes; none once it is forgotten.
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

    /// The record as it is now.
    pub fn record(&self) -> OperationRecord {
        self.shared.copy()
    }

    /// Notes what was said.
    pub fn note(&self, logged: &LoggedEntry) {
        self.shared.write().operation.note(logged);
        self.history.save(&self.shared);
    }

    /// Notes what the cluster says.
    pub fn note_findings(&self, findings: &[Finding], now: Timestamp) {
        if self.shared.write().operation.note_findings(findings, now) {
            self.history.save(&self.shared);
        }
    }

    /// Notes how the operation ended; false if that is noted already. From then on its record may be dropped for a newer
    /// one.
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
