//! An operation of the past, or the one under way.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::lifecycle::{OperationKind, Outcome};
use wasmspawner_core::progress::{OperationRecord, StageSpan};

/// What happened in one operation.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Operation {
    /// The operation; the first part of its events' ids.
    job_id: String,
    /// `spawn`, `stop`, or `reap`: the lab ended by itself.
    kind: OperationKindName,
    /// When it began, RFC 3339.
    started_at: String,
    /// When it ended; null while it goes on.
    ended_at: Option<String>,
    /// How it ended; null while it goes on.
    #[schema(value_type = Option<Object>)]
    outcome: Option<Outcome>,
    /// The stages it went through, in order.
    stages: Vec<StageTime>,
    /// Everything that was said: `number`, `at`, `type` and `data` of each event.
    #[schema(value_type = Vec<Object>)]
    events: Vec<wasmspawner_core::progress::LoggedEntry>,
}

/// The time spent in one stage.
#[derive(Debug, Serialize, ToSchema)]
struct StageTime {
    stage: &'static str,
    /// Why, for programs.
    reason: String,
    /// RFC 3339.
    entered_at: String,
    /// Milliseconds; null while it lasts.
    duration_ms: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum OperationKindName {
    Spawn,
    Stop,
    Reap,
}

impl From<&OperationRecord> for Operation {
    fn from(record: &OperationRecord) -> Self {
        Self {
            job_id: record.job_id.to_string(),
            kind: match record.kind {
                OperationKind::Spawn => OperationKindName::Spawn,
                OperationKind::Stop => OperationKindName::Stop,
                OperationKind::Reap => OperationKindName::Reap,
            },
            started_at: record.started_at.to_string(),
            ended_at: record.ended_at.map(|at| at.to_string()),
            outcome: record.outcome.clone(),
            stages: record.stages.iter().map(StageTime::from).collect(),
            events: record.events.clone(),
        }
    }
}

impl From<&StageSpan> for StageTime {
    fn from(span: &StageSpan) -> Self {
        Self {
            stage: span.stage.as_str(),
            reason: span.reason.clone(),
            entered_at: span.entered_at.to_string(),
            duration_ms: span.duration_ms,
        }
    }
}
