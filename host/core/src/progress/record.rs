//! The record of one operation, for the history.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Entry, LoggedEntry, StageReport};
use crate::lab::{JobId, LabKey};
use crate::lifecycle::{Operation, OperationKind, Outcome};
use crate::stage::Stage;

/// What happened in one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationRecord {
    /// The operation.
    pub job_id: JobId,
    /// On which lab.
    #[serde(flatten)]
    pub key: LabKey,
    /// What it was to do.
    pub kind: OperationKind,
    /// When it began.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// When it ended; absent while it goes on.
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
    /// How it ended; absent while it goes on.
    pub outcome: Option<Outcome>,
    /// The stages it went through, in order.
    pub stages: Vec<StageSpan>,
    /// Everything that was said.
    pub events: Vec<LoggedEntry>,
}

/// The time spent in one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageSpan {
    /// The stage.
    pub stage: Stage,
    /// Why, in `CamelCase`, as of its beginning.
    pub reason: String,
    /// When it was entered.
    #[schemars(with = "String")]
    pub entered_at: Timestamp,
    /// How long it took in milliseconds; absent while it lasts.
    pub duration_ms: Option<i64>,
}

impl OperationRecord {
    /// The record of an operation that begins.
    pub fn begin(key: LabKey, operation: &Operation) -> Self {
        Self {
            job_id: operation.job_id,
            key,
            kind: operation.kind,
            started_at: operation.started_at,
            ended_at: None,
            outcome: None,
            stages: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Notes what was said.
    pub fn note(&mut self, logged: &LoggedEntry) {
        if let Entry::Stage(report) = &logged.entry {
            self.enter(report);
        }
        self.events.push(logged.clone());
    }

    /// Notes how the operation ended.
    pub fn end(&mut self, outcome: Outcome, now: Timestamp) {
        self.leave(now);
        self.ended_at = Some(now);
        self.outcome = Some(outcome);
    }

    fn enter(&mut self, report: &StageReport) {
        if self.stages.last().is_some_and(|last| last.stage == report.stage) {
            return;
        }
        self.leave(report.at);
        self.stages.push(StageSpan {
            stage: report.stage,
            reason: report.reason.clone(),
            entered_at: report.at,
            duration_ms: None,
        });
    }

    fn leave(&mut self, now: Timestamp) {
        if let Some(last) = self.stages.last_mut() {
            last.duration_ms.get_or_insert(now.as_millisecond() - last.entered_at.as_millisecond());
        }
    }
}
