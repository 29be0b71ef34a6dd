//! The numbered log of one operation.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Entry, EventId};
use crate::names::lab::JobId;

/// An entry with its place in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoggedEntry {
    /// Position in the log, from 1.
    pub number: usize,
    /// When it was logged.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The entry.
    #[serde(flatten)]
    pub entry: Entry,
}

/// The log of one operation, in order. Progress never decreases. After the final entry only errors of the running lab
/// are added. An entry that would repeat the one before it is not added.
#[derive(Debug, Clone)]
pub struct ProgressLog {
    job_id: JobId,
    next_number: usize,
    entries: Vec<LoggedEntry>,
    progress: u8,
    finished: bool,
}

impl ProgressLog {
    /// Creates the empty log of an operation.
    pub fn new(job_id: JobId) -> Self {
        Self { job_id, next_number: 1, entries: Vec::new(), progress: 0, finished: false }
    }

    /// Creates the log of an operation that began before a restart of the service, with the entries that the history
    /// has. New entries get numbers from `next_number` on, which is above all numbers that were used before.
    pub fn resumed(job_id: JobId, entries: Vec<LoggedEntry>, next_number: usize) -> Self {
        let progress = entries.iter().filter_map(|logged| match logged.entry {
            Entry::Progress(percent) => Some(percent),
            _ => None,
        });
        let progress = progress.max().unwrap_or_default();
        let finished = entries.iter().any(|logged| logged.entry.is_last());
        let after = entries.last().map_or(1, |last| last.number + 1);
        Self { job_id, next_number: next_number.max(after), entries, progress, finished }
    }

    /// The operation.
    pub fn job_id(&self) -> JobId {
        self.job_id
    }

    /// Returns the number of the next entry.
    pub fn next_number(&self) -> usize {
        self.next_number
    }

    /// Appends an entry. Returns false if it was not added.
    pub fn append(&mut self, entry: Entry, at: Timestamp) -> bool {
        let refused = self.finished && !matches!(entry, Entry::Error(_));
        if refused || self.repeats(&entry) {
            return false;
        }
        if let Entry::Progress(percent) = entry {
            if percent <= self.progress {
                return false;
            }
            self.progress = percent.min(100);
        }
        self.finished |= entry.is_last();
        self.entries.push(LoggedEntry { number: self.next_number, at, entry });
        self.next_number += 1;
        true
    }

    /// Closes the log of an operation whose final entry was not logged here.
    pub fn close(&mut self) {
        self.finished = true;
    }

    /// All entries so far.
    pub fn entries(&self) -> &[LoggedEntry] {
        &self.entries
    }

    /// Returns the entries after `last_seen`, or all entries if that id belongs to another operation.
    pub fn after(&self, last_seen: Option<EventId>) -> &[LoggedEntry] {
        let seen = last_seen.filter(|id| id.job_id == self.job_id).map_or(0, |id| id.number);
        let skip = self.entries.partition_point(|logged| logged.number <= seen);
        &self.entries[skip..]
    }

    /// The highest progress so far in percent, 0 to 100.
    pub fn progress(&self) -> u8 {
        self.progress
    }

    /// Returns true once the final entry is logged.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    fn repeats(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Stage(report) => self.last_stage().is_some_and(|last| {
                (last.stage, &last.reason, &last.message) == (report.stage, &report.reason, &report.message)
            }),
            _ => self.entries.last().is_some_and(|last| last.entry == *entry),
        }
    }

    fn last_stage(&self) -> Option<&super::StageReport> {
        self.entries.iter().rev().find_map(|logged| match &logged.entry {
            Entry::Stage(report) => Some(report),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> ProgressLog {
        ProgressLog::new("01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap())
    }

    fn numbers(entries: &[LoggedEntry]) -> Vec<usize> {
        entries.iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn progress_never_falls() {
        let mut log = log();
        for percent in [10, 5, 10, 40] {
            log.append(Entry::Progress(percent), Timestamp::UNIX_EPOCH);
        }
        let appended: Vec<_> = log.entries().iter().map(|logged| logged.entry.clone()).collect();
        assert_eq!(appended, [Entry::Progress(10), Entry::Progress(40)]);
    }

    #[test]
    fn no_info_entry_follows_the_end() {
        let mut log = log();
        assert!(log.append(Entry::Complete("done".into()), Timestamp::UNIX_EPOCH));
        assert!(!log.append(Entry::Info("late".into()), Timestamp::UNIX_EPOCH));
        assert!(log.is_finished());
    }

    #[test]
    fn reading_goes_on_after_the_last_seen_id_of_the_same_operation() {
        let mut log = log();
        for text in ["a", "b", "c"] {
            log.append(Entry::Info(text.into()), Timestamp::UNIX_EPOCH);
        }
        let at = |number| Some(EventId { job_id: log.job_id(), number });
        assert_eq!(numbers(log.after(None)), [1, 2, 3]);
        assert_eq!(numbers(log.after(at(2))), [3]);
        assert_eq!(numbers(log.after(at(9))), [0; 0]);
        assert_eq!(numbers(log.after(at(usize::MAX - 1))), [0; 0]);
        let older = "01890a5d-ac96-774b-bcce-b302099a8058-2".parse().unwrap();
        assert_eq!(numbers(log.after(Some(older))), [1, 2, 3]);
    }

    #[test]
    fn a_restored_log_is_finished_and_can_be_read() {
        let mut log = log();
        log.append(Entry::Progress(100), Timestamp::UNIX_EPOCH);
        log.append(Entry::Complete("done".into()), Timestamp::UNIX_EPOCH);
        let restored = ProgressLog::resumed(log.job_id(), log.entries().to_vec(), 1);
        assert!(restored.is_finished());
        assert_eq!((restored.progress(), numbers(restored.after(None))), (100, vec![1, 2]));
    }

    #[test]
    fn a_resumed_log_continues_its_ids_and_its_progress() {
        let mut log = log();
        log.append(Entry::Progress(40), Timestamp::UNIX_EPOCH);
        let mut log = ProgressLog::resumed(log.job_id(), log.entries().to_vec(), 8);
        log.append(Entry::Progress(10), Timestamp::UNIX_EPOCH);
        log.append(Entry::Info("again".into()), Timestamp::UNIX_EPOCH);
        let seen_before_the_restart = Some(EventId { job_id: log.job_id(), number: 5 });
        assert_eq!(numbers(log.after(seen_before_the_restart)), [8]);
        assert_eq!((log.progress(), numbers(log.after(None))), (40, vec![1, 8]));
    }

    #[test]
    fn errors_of_a_running_lab_may_follow_the_end_of_its_spawn() {
        let mut log = log();
        log.append(Entry::Complete("ready".into()), Timestamp::UNIX_EPOCH);
        assert!(log.append(Entry::Error("restarted".into()), Timestamp::UNIX_EPOCH));
        assert!(!log.append(Entry::Failed("no".into()), Timestamp::UNIX_EPOCH));
        assert!(log.is_finished());
    }
}
