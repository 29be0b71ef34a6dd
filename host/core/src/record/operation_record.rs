//! The record of one operation, for the history.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lifecycle::progress::{Entry, LoggedEntry, StageReport};
use crate::lifecycle::stage::{Finding, Stage};
use crate::lifecycle::{Operation, OperationKind, Outcome};
use crate::names::lab::JobId;
use crate::names::spawn_key::SpawnKey;
use crate::policy::compose::FieldsBySource;
use crate::values::word::known_items;

/// The history of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationRecord {
    /// The operation.
    pub job_id: JobId,
    /// The lab, or the lab's child.
    #[serde(flatten)]
    pub key: SpawnKey,
    /// The kind of operation.
    pub kind: OperationKind,
    /// When it began.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// When it ended; absent while it is under way.
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
    /// How it ended; absent while it is under way.
    pub outcome: Option<Outcome>,
    /// The stages that it passed through, in order.
    #[serde(deserialize_with = "known_items")]
    pub stages: Vec<StageSpan>,
    /// All entries of its log.
    #[serde(deserialize_with = "known_items")]
    pub events: Vec<LoggedEntry>,
    /// The cluster's events about the lab's pod and volumes, oldest first; at most [`MAX_FINDINGS`].
    #[serde(default, deserialize_with = "known_items")]
    pub cluster_events: Vec<NotedFinding>,
    /// Which fields of the lab who decided, in this spawn.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub decided_by: FieldsBySource,
}

/// A finding of the cluster, and when it was first observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotedFinding {
    /// When the service first observed it.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
}

/// Largest number of findings kept for one operation. Kubernetes combines repeats, so a lab rarely has twenty.
pub const MAX_FINDINGS: usize = 100;

/// The time spent in one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageSpan {
    /// The stage.
    pub stage: Stage,
    /// The reason when the stage was entered, in `CamelCase`.
    pub reason: String,
    /// When it was entered.
    #[schemars(with = "String")]
    pub entered_at: Timestamp,
    /// How long the stage took in milliseconds; absent while it lasts.
    pub duration_ms: Option<i64>,
}

impl OperationRecord {
    /// Creates the record of an operation that begins.
    pub fn begin(key: SpawnKey, operation: &Operation) -> Self {
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
            decided_by: FieldsBySource::new(),
        }
    }

    /// Records the current findings. Returns those that are new, or more severe or more frequent than before.
    pub fn note_findings(&mut self, findings: &[Finding], now: Timestamp) -> Vec<NotedFinding> {
        let mut changed = Vec::new();
        let full = self.cluster_events.len() >= MAX_FINDINGS;
        for finding in findings {
            let same = |noted: &&mut NotedFinding| {
                let known = &noted.finding;
                (&known.reason, &known.message, &known.source)
                    == (&finding.reason, &finding.message, &finding.source)
            };
            match self.cluster_events.iter_mut().find(same) {
                Some(noted) if noted.finding == *finding => {}
                // A problem that has passed is reported as information; the history keeps its highest severity.
                Some(noted) => {
                    let worse = noted.finding.severity.max(finding.severity);
                    let more = noted.finding.count.max(finding.count);
                    if (worse, more) != (noted.finding.severity, noted.finding.count) {
                        (noted.finding.severity, noted.finding.count) = (worse, more);
                        changed.push(noted.clone());
                    }
                }
                None if !full => {
                    let noted = NotedFinding { at: now, finding: finding.clone() };
                    self.cluster_events.push(noted.clone());
                    changed.push(noted);
                }
                None => {}
            }
        }
        changed
    }

    /// Adds an entry of the log.
    pub fn note(&mut self, logged: &LoggedEntry) {
        if let Entry::Stage(report) = &logged.entry {
            self.enter(report);
        }
        self.events.push(logged.clone());
    }

    /// Records how the operation ended.
    pub fn end(&mut self, outcome: Outcome, now: Timestamp) {
        self.leave(now);
        self.ended_at = Some(now);
        self.outcome = Some(outcome);
    }

    /// Adds what the process that led before has recorded of the same operation.
    pub fn add_earlier(&mut self, earlier: Self) {
        self.events.extend(earlier.events);
        self.events.sort_by_key(|logged| logged.number);
        self.events.dedup_by_key(|logged| logged.number);
        let findings = std::mem::replace(&mut self.cluster_events, earlier.cluster_events);
        for noted in findings {
            self.note_findings(&[noted.finding], noted.at);
        }
        if self.decided_by.is_empty() {
            self.decided_by = earlier.decided_by;
        }
        if self.ended_at.is_none() {
            (self.ended_at, self.outcome) = (earlier.ended_at, earlier.outcome);
        }
        self.started_at = self.started_at.min(earlier.started_at);
        self.stages = Vec::new();
        for logged in self.events.clone() {
            if let Entry::Stage(report) = &logged.entry {
                self.enter(report);
            }
        }
        if let Some(ended_at) = self.ended_at {
            self.leave(ended_at);
        }
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
    use crate::lifecycle::stage::Severity;
    use crate::names::Username;
    use crate::names::lab::LabKey;

    #[test]
    fn a_repeated_finding_is_noted_once_with_its_highest_severity() {
        let operation = Operation {
            job_id: JobId::nil(),
            kind: OperationKind::Spawn,
            started_at: Timestamp::UNIX_EPOCH,
            deadline: Timestamp::UNIX_EPOCH,
        };
        let mut record = OperationRecord::begin(
            LabKey::default_server(Username::parse("ada").unwrap()).into(),
            &operation,
        );
        let finding = |severity, count| Finding {
            severity,
            reason: "FailedMount".into(),
            message: "no such volume".into(),
            count,
            source: "pod".into(),
        };
        let at = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let first = NotedFinding { at: at(1), finding: finding(Severity::Warning, 1) };
        assert_eq!(record.note_findings(&[finding(Severity::Warning, 1)], at(1)), [first]);
        assert_eq!(record.note_findings(&[finding(Severity::Warning, 1)], at(2)), []);
        let noted = NotedFinding { at: at(1), finding: finding(Severity::Warning, 3) };
        assert_eq!(
            record.note_findings(&[finding(Severity::Warning, 3)], at(3)),
            std::slice::from_ref(&noted)
        );
        assert_eq!(record.note_findings(&[finding(Severity::Info, 3)], at(4)), [], "it was a warning");
        assert_eq!(record.cluster_events, [noted]);
    }

    fn stage(number: usize, stage: Stage, seconds: i64) -> LoggedEntry {
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        LoggedEntry { number, at, entry: Entry::Stage(StageReport::new(stage, ("R", "m"), 1, at)) }
    }

    fn record() -> OperationRecord {
        let started_at = Timestamp::UNIX_EPOCH;
        let operation =
            Operation { job_id: JobId::nil(), kind: OperationKind::Spawn, started_at, deadline: started_at };
        OperationRecord::begin(LabKey::default_server(Username::parse("ada").unwrap()).into(), &operation)
    }

    #[test]
    fn what_the_process_before_has_recorded_comes_first() {
        let (mut earlier, mut later) = (record(), record());
        earlier.note(&stage(1, Stage::Scheduling, 1));
        earlier.note(&stage(2, Stage::Pulling, 3));
        later.note(&stage(9, Stage::Running, 8));
        later.end(Outcome::Complete, Timestamp::UNIX_EPOCH + SignedDuration::from_secs(9));
        let mut whole = later.clone();
        whole.add_earlier(earlier.clone());
        let stages: Vec<_> = whole.stages.iter().map(|span| (span.stage, span.duration_ms)).collect();
        let expected = [(Stage::Scheduling, 2000), (Stage::Pulling, 5000), (Stage::Running, 1000)];
        assert_eq!(stages, expected.map(|(stage, spent)| (stage, Some(spent))));
        assert_eq!((whole.ended_at, whole.events.len()), (later.ended_at, 3));
        let before = whole.clone();
        whole.add_earlier(earlier);
        whole.add_earlier(later);
        assert_eq!(whole, before, "nothing is new");
    }

    #[test]
    fn a_word_of_another_version_costs_its_item_only() {
        let mut written = record();
        written.note(&stage(1, Stage::Scheduling, 1));
        written.note(&stage(2, Stage::Running, 2));
        let mut value = serde_json::to_value(&written).unwrap();
        value["stages"][0]["stage"] = "Dreaming".into();
        value["events"][0]["type"] = "rumour".into();
        value["mood"] = "good".into();
        let read: OperationRecord = serde_json::from_value(value.clone()).unwrap();
        assert_eq!((read.stages, read.events.len()), (vec![written.stages[1].clone()], 1));
        value["kind"] = "dance".into();
        assert!(serde_json::from_value::<OperationRecord>(value).is_err());
    }
}
