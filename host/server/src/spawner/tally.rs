//! What is counted of an operation that ended.

use std::time::Duration;

use wasmspawner_core::lifecycle::{Blame, OperationKind, Outcome};
use wasmspawner_core::progress::OperationRecord;

use crate::telemetry::{Metrics, SpawnOutcome};

/// Counts an ended spawn and the time it spent in each stage.
pub(super) fn count(metrics: &Metrics, record: &OperationRecord, outcome: &Outcome) {
    if record.kind != OperationKind::Spawn {
        return;
    }
    metrics.spawn_ended(match outcome {
        Outcome::Complete => SpawnOutcome::Complete,
        Outcome::Failed(failure) if failure.blame == Blame::User => SpawnOutcome::Denied,
        Outcome::Failed(_) => SpawnOutcome::Failed,
        Outcome::Cancelled => SpawnOutcome::Cancelled,
    });
    for span in &record.stages {
        let spent = span.duration_ms.and_then(|millis| u64::try_from(millis).ok()).unwrap_or_default();
        metrics.stage_left(span.stage, Duration::from_millis(spent));
    }
}
