//! The record of one operation, for the history.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lab::{JobId, LabKey};
use crate::lifecycle::{Operation, OperationKind, Outcome};
use crate::progress::{Entry, LoggedEntry, StageReport};
use crate::stage::{Finding, Stage};

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
    /// What the cluster said about the lab's pod and volumes, oldest first; not more than [`MOST_FINDINGS`].
    #[serde(default)]
    pub cluster_events: Vec<NotedFinding>,
}

/// Something that the cluster said, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotedFinding {
    /// When it was first seen here.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// What it is.
    #[serde(flatten)]
    pub finding: Finding,
}

/// Findings that are kept of one operation. Kubernetes folds repeats, so that a lab rarely has twenty.
pub const MOST_FINDINGS: usize = 100;

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
            cluster_events: Vec::new(),
        }
    }

    /// Notes what the cluster says now; answers whether that is more, or worse, than what was noted before.
    pub fn note_findings(&mut self, findings: &[Finding], now: Timestamp) -> bool {
        let mut changed = false;
        let full = self.cluster_events.len() >= MOST_FINDINGS;
        for finding in findings {
            let same = |noted: &&mut NotedFinding| {
                let known = &noted.finding;
                (&known.reason, &known.message, &known.source)
                    == (&finding.reason, &finding.message, &finding.source)
            };
            match self.cluster_events.iter_mut().find(same) {
                Some(noted) if noted.finding == *finding => {}
                // Trouble that is over is told as information; it was trouble all the same.
                Some(noted) => {
                    let worse = noted.finding.severity.max(finding.severity);
                    let more = noted.finding.count.max(finding.count);
                    changed |= (worse, more) != (noted.finding.severity, noted.finding.count);
                    (noted.finding.severity, noted.finding.count) = (worse, more);
                }
                None if !full => {
                    self.cluster_events.push(NotedFinding { at: now, finding: finding.clone() });
                    changed = true;
                }
                None => {}
            }
        }
        changed
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

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::names::Username;
    use crate::stage::Severity;

    #[test]
    fn what_the_cluster_says_is_noted_once_and_at_its_worst() {
        let operation = Operation {
            job_id: JobId::nil(),
            kind: OperationKind::Spawn,
            started_at: Timestamp::UNIX_EPOCH,
            deadline: Timestamp::UNIX_EPOCH,
        };
        let mut record =
            OperationRecord::begin(LabKey::default_server(Username::parse("ada").unwrap()), &operation);
        let finding = |severity, count| Finding {
            severity,
            reason: "FailedMount".into(),
            message: "no such volume".into(),
            count,
            source: "pod".into(),
        };
        let at = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        assert!(record.note_findings(&[finding(Severity::Warning, 1)], at(1)));
        assert!(!record.note_findings(&[finding(Severity::Warning, 1)], at(2)));
        assert!(record.note_findings(&[finding(Severity::Warning, 3)], at(3)));
        assert!(!record.note_findings(&[finding(Severity::Info, 3)], at(4)), "it was a warning");
        let noted = NotedFinding { at: at(1), finding: finding(Severity::Warning, 3) };
        assert_eq!(record.cluster_events, [noted]);
    }
}
