//! The events about labs and their children that policies receive.

use std::time::Duration;

use jiff::Timestamp;
use wasmspawner_core::lifecycle::{OperationKind, Outcome};
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::policy::{Happening, LabEvent, Subject, SubjectChild};
use wasmspawner_core::record::operation_record::OperationRecord;

use super::Labs;
use crate::errors::SpawnError;

/// Makes an event that only has its kind and the lab or child.
fn event(what: Happening, key: &SpawnKey) -> LabEvent {
    let child = key.child.as_ref().map(|child| SubjectChild {
        kind: child.kind,
        name: child.name.to_string(),
        workers: 0,
    });
    LabEvent {
        what,
        at: Timestamp::now(),
        username: key.lab.user.to_string(),
        server: key.lab.server.to_string(),
        operation: None,
        image: None,
        took: None,
        reason: None,
        message: None,
        subject: Subject { child, ..Subject::default() },
    }
}

/// Returns the event at the beginning or the end of an operation; `None` if policies receive no event for it.
pub(crate) fn event_of(record: &OperationRecord, image: Option<String>) -> Option<LabEvent> {
    let what = match (record.kind, &record.outcome) {
        (OperationKind::Spawn, None) => Happening::Spawned,
        (OperationKind::Spawn, Some(Outcome::Complete)) => Happening::Ready,
        (OperationKind::Stop | OperationKind::Cleanup, Some(Outcome::Complete)) => Happening::Stopped,
        (_, Some(Outcome::Failed(_))) => Happening::Failed,
        (_, Some(Outcome::Cancelled)) | (OperationKind::Stop | OperationKind::Cleanup, None) => return None,
    };
    let failure = match &record.outcome {
        Some(Outcome::Failed(failure)) => Some(failure),
        _ => None,
    };
    let took = record.ended_at.map(|ended| ended.duration_since(record.started_at));
    Some(LabEvent {
        at: record.ended_at.unwrap_or(record.started_at),
        operation: Some(record.job_id.to_string()),
        image,
        took: took.and_then(|took| Duration::try_from(took).ok()),
        reason: failure.map(|failure| failure.reason.clone()),
        message: failure.map(|failure| failure.message.clone()),
        ..event(what, &record.key)
    })
}

impl Labs {
    /// Sends an event to the policies if the result is a denial. Returns the result unchanged.
    pub(crate) fn heard<T>(&self, key: &SpawnKey, done: Result<T, SpawnError>) -> Result<T, SpawnError> {
        if let Err(error @ SpawnError::Denied { by, .. }) = &done {
            let (reason, message) = (Some(by.rule.clone()), Some(error.to_string()));
            self.context().policies.tell(LabEvent { reason, message, ..event(Happening::Denied, key) });
        }
        done
    }
}
