//! An operation of the past, or the one under way.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::lifecycle::{OperationKind, Outcome};
use wasmspawner_core::progress::{NotedFinding, OperationRecord, StageSpan};
use wasmspawner_core::stage;

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
    /// What the cluster said about the lab's pod and volumes, oldest first.
    cluster_events: Vec<ClusterEvent>,
}

/// Something that the cluster said.
#[derive(Debug, Serialize, ToSchema)]
struct ClusterEvent {
    /// When it was first seen, RFC 3339.
    at: String,
    /// `info`; `warning`: the operation could still succeed; `critical`: it could not.
    severity: Severity,
    /// Kubernetes' own reason.
    reason: String,
    /// The cluster's words, or the service's where those help nobody.
    message: String,
    /// How often it was said.
    count: u32,
    /// What it is about: `pod`, `container/notebook`, `PersistentVolumeClaim/claim-ada`.
    source: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Info,
    Warning,
    Critical,
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
            cluster_events: record.cluster_events.iter().map(ClusterEvent::from).collect(),
        }
    }
}

impl From<&NotedFinding> for ClusterEvent {
    fn from(noted: &NotedFinding) -> Self {
        let stage::Finding { severity, reason, message, count, source } = noted.finding.clone();
        let severity = match severity {
            stage::Severity::Info => Severity::Info,
            stage::Severity::Warning => Severity::Warning,
            stage::Severity::Critical => Severity::Critical,
        };
        Self { at: noted.at.to_string(), severity, reason, message, count, source }
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
