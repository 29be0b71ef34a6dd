//! The answer about an operation, past or under way.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::lifecycle;
use wasmspawner_core::lifecycle::stage as pod_stage;
use wasmspawner_core::record::operation_record::{NotedFinding, OperationRecord, StageSpan};
use wasmspawner_core::users::access::Permit;

use super::event::LoggedEvent;
use super::lab::for_administrators;
use super::stage::Stage;

/// What happened in one operation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Operation {
    /// The operation's id; the first part of the ids of its events.
    #[schema(format = "uuid")]
    job_id: String,
    /// What the operation does.
    kind: OperationKind,
    /// When it began, RFC 3339.
    #[schema(format = DateTime)]
    started_at: String,
    /// When it ended, RFC 3339; null while it is under way.
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    /// How it ended; null while it is under way.
    outcome: Option<Outcome>,
    /// Why it failed; null where `outcome` is not `failed`.
    failure: Option<Failure>,
    /// The stages it went through, in order.
    stages: Vec<StageTime>,
    /// All events of the operation, in order.
    events: Vec<LoggedEvent>,
    /// Events and conditions that Kubernetes reported about the lab's pod and volumes, oldest first.
    cluster_events: Vec<ClusterEvent>,
    /// The lab's fields by who decided them in this spawn, such as a policy; only for administrators.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    decided_by: BTreeMap<String, Vec<String>>,
}

/// Something that Kubernetes reported.
#[derive(Debug, Serialize, ToSchema)]
struct ClusterEvent {
    /// When it was first seen, RFC 3339.
    #[schema(format = DateTime)]
    at: String,
    /// How serious it is.
    severity: Severity,
    /// The reason that Kubernetes gives.
    reason: String,
    /// The message of Kubernetes, or the service's own where that one would not help anybody.
    message: String,
    /// How often it was reported.
    count: u32,
    /// The object that it is about: `pod`, `container/notebook`, `PersistentVolumeClaim/claim-ada`.
    source: String,
}

/// How serious a report is. `warning`: the operation could still succeed. `critical`: it could not.
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
    stage: Stage,
    /// The reason for the stage, for programs.
    reason: String,
    /// When the stage began, RFC 3339.
    #[schema(format = DateTime)]
    entered_at: String,
    /// How long it lasted, in milliseconds; null while it lasts.
    duration_ms: Option<i64>,
}

/// What an operation does. `cleanup`: it removes what is left of a lab that ended by itself.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum OperationKind {
    Spawn,
    Stop,
    Cleanup,
}

/// How an operation ended. `cancelled`: it was ended by a request to stop.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Complete,
    Failed,
    Cancelled,
}

/// Why an operation failed.
#[derive(Debug, Serialize, ToSchema)]
struct Failure {
    /// The reason, for programs, in `CamelCase`.
    reason: String,
    /// The reason, for people.
    message: String,
    /// Who can mend it.
    blame: Blame,
}

/// Who can mend a failure: the `user` can choose something else, the `policy` gave an answer that was refused, the
/// `cluster` could not do it, or the `service` or its configuration is at fault.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Blame {
    User,
    Policy,
    Cluster,
    Service,
}

impl Operation {
    /// Describes the operation with the details that this caller may see.
    pub(crate) fn from_record(record: &OperationRecord, permit: Permit) -> Self {
        Self {
            job_id: record.job_id.to_string(),
            kind: record.kind.into(),
            started_at: record.started_at.to_string(),
            ended_at: record.ended_at.map(|at| at.to_string()),
            outcome: record.outcome.as_ref().map(Outcome::from),
            failure: record.outcome.as_ref().and_then(Failure::from_outcome),
            stages: record.stages.iter().map(StageTime::from).collect(),
            events: record.events.iter().map(LoggedEvent::from).collect(),
            cluster_events: record.cluster_events.iter().map(ClusterEvent::from).collect(),
            decided_by: for_administrators(record.decided_by.clone(), permit),
        }
    }
}

impl From<lifecycle::OperationKind> for OperationKind {
    fn from(kind: lifecycle::OperationKind) -> Self {
        match kind {
            lifecycle::OperationKind::Spawn => Self::Spawn,
            lifecycle::OperationKind::Stop => Self::Stop,
            lifecycle::OperationKind::Cleanup => Self::Cleanup,
        }
    }
}

impl From<&lifecycle::Outcome> for Outcome {
    fn from(outcome: &lifecycle::Outcome) -> Self {
        match outcome {
            lifecycle::Outcome::Complete => Self::Complete,
            lifecycle::Outcome::Failed(_) => Self::Failed,
            lifecycle::Outcome::Cancelled => Self::Cancelled,
        }
    }
}

impl Failure {
    fn from_outcome(outcome: &lifecycle::Outcome) -> Option<Self> {
        let lifecycle::Outcome::Failed(failure) = outcome else { return None };
        let blame = match failure.blame {
            lifecycle::Blame::User => Blame::User,
            lifecycle::Blame::Policy => Blame::Policy,
            lifecycle::Blame::Cluster => Blame::Cluster,
            lifecycle::Blame::Service => Blame::Service,
        };
        Some(Self { reason: failure.reason.clone(), message: failure.message.clone(), blame })
    }
}

impl From<&NotedFinding> for ClusterEvent {
    fn from(noted: &NotedFinding) -> Self {
        let pod_stage::Finding { severity, reason, message, count, source } = noted.finding.clone();
        let severity = match severity {
            pod_stage::Severity::Info => Severity::Info,
            pod_stage::Severity::Warning => Severity::Warning,
            pod_stage::Severity::Critical => Severity::Critical,
        };
        Self { at: noted.at.to_string(), severity, reason, message, count, source }
    }
}

impl From<&StageSpan> for StageTime {
    fn from(span: &StageSpan) -> Self {
        Self {
            stage: span.stage.into(),
            reason: span.reason.clone(),
            entered_at: span.entered_at.to_string(),
            duration_ms: span.duration_ms,
        }
    }
}
