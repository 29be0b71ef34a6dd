//! The log of an operation, and its readers.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use wasmspawner_core::lifecycle::progress::{Entry, EventId, LoggedEntry, ProgressLog};
use wasmspawner_core::names::lab::JobId;

/// The log of one operation: the lab's driver appends, and any number of readers follow at their own pace.
#[derive(Debug)]
pub(crate) struct LiveLog {
    log: RwLock<ProgressLog>,
    length: watch::Sender<usize>,
}

impl LiveLog {
    pub(crate) fn new(log: ProgressLog) -> Arc<Self> {
        Arc::new(Self { log: RwLock::new(log), length: watch::Sender::new(0) })
    }

    /// Appends an entry. If it gives readers something new, `noted` is called with it before any reader sees it.
    pub(crate) fn append(&self, entry: Entry, at: Timestamp, noted: impl FnOnce(&LoggedEntry)) {
        let mut log = self.log.write().unwrap_or_else(PoisonError::into_inner);
        if log.append(entry, at) {
            if let Some(logged) = log.entries().last() {
                noted(logged);
            }
            self.length.send_replace(log.entries().len());
        }
    }

    /// Closes the log, so that readers reach its end.
    pub(crate) fn close(&self) {
        self.log.write().unwrap_or_else(PoisonError::into_inner).close();
        self.length.send_modify(|_| {});
    }

    /// The id of the operation.
    pub(crate) fn job_id(&self) -> JobId {
        self.log.read().unwrap_or_else(PoisonError::into_inner).job_id()
    }

    /// True after the operation's last event.
    pub(crate) fn is_finished(&self) -> bool {
        self.log.read().unwrap_or_else(PoisonError::into_inner).is_finished()
    }

    /// The progress of the operation, from 0 to 100.
    pub(crate) fn progress(&self) -> u8 {
        self.log.read().unwrap_or_else(PoisonError::into_inner).progress()
    }

    /// A reader that starts after `last_seen`.
    pub(crate) fn reader(self: &Arc<Self>, last_seen: Option<EventId>) -> EventReader {
        let job_id = self.log.read().unwrap_or_else(PoisonError::into_inner).job_id();
        EventReader {
            log: Arc::clone(self),
            length: self.length.subscribe(),
            job_id,
            last_seen,
            gathers: false,
        }
    }
}

/// A reader of the log of one operation.
#[derive(Debug)]
pub struct EventReader {
    log: Arc<LiveLog>,
    length: watch::Receiver<usize>,
    job_id: JobId,
    last_seen: Option<EventId>,
    /// True if `next` waits for more entries before it returns. The first read returns the present entries at once.
    gathers: bool,
}

/// Entries that are appended within this time are read together, except at the end of an operation. Otherwise a Hub
/// that starts a hundred labs would be woken for every entry.
const GATHER: Duration = Duration::from_millis(500);

impl EventReader {
    /// The id of the operation.
    pub fn job_id(&self) -> JobId {
        self.job_id
    }

    /// Returns the entries that were not read yet, and waits until there is at least one. Returns `None` once the
    /// operation is over and everything was read.
    pub async fn next(&mut self) -> Option<Vec<LoggedEntry>> {
        loop {
            self.length.borrow_and_update();
            let (entries, finished) = {
                let log = self.log.log.read().unwrap_or_else(PoisonError::into_inner);
                (log.after(self.last_seen).to_vec(), log.is_finished())
            };
            if let Some(last) = entries.last() {
                if !finished && std::mem::take(&mut self.gathers) {
                    self.gather().await;
                    continue;
                }
                self.gathers = true;
                self.last_seen = Some(EventId { job_id: self.job_id, number: last.number });
                return Some(entries);
            }
            if finished || self.length.changed().await.is_err() {
                return None;
            }
        }
    }

    async fn gather(&mut self) {
        let until_over = async { while !self.log.is_finished() && self.length.changed().await.is_ok() {} };
        // Entries that are appended later are read the next time.
        let _ = tokio::time::timeout(GATHER, until_over).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Arc<LiveLog> {
        LiveLog::new(ProgressLog::new(JobId::new(uuid::Uuid::from_u128(7))))
    }

    fn append_info(log: &LiveLog, text: &str) {
        log.append(Entry::Info(text.into()), Timestamp::UNIX_EPOCH, |_| {});
    }

    #[tokio::test]
    async fn a_reader_gets_earlier_and_later_entries() {
        let log = log();
        append_info(&log, "one");
        let mut reader = log.reader(None);
        assert_eq!(reader.next().await.map(|entries| entries.len()), Some(1));
        let following = tokio::spawn(async move {
            let entries = reader.next().await;
            (entries, reader.next().await)
        });
        append_info(&log, "two");
        log.append(Entry::Complete("done".into()), Timestamp::UNIX_EPOCH, |_| {});
        let (entries, rest) = following.await.unwrap();
        let read = entries.unwrap().len() + rest.map_or(0, |entries| entries.len());
        assert_eq!(read, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn entries_close_in_time_are_read_together_and_the_end_at_once() {
        let log = log();
        append_info(&log, "one");
        let mut reader = log.reader(None);
        let read = |entries: Option<Vec<LoggedEntry>>| entries.map(|entries| entries.len());
        assert_eq!(read(reader.next().await), Some(1), "what is there is not kept back");
        let begun = tokio::time::Instant::now();
        append_info(&log, "two");
        let later = Arc::clone(&log);
        tokio::spawn(async move {
            tokio::time::sleep(GATHER / 2).await;
            append_info(&later, "three");
        });
        assert_eq!(read(reader.next().await), Some(2));
        assert_eq!(begun.elapsed().as_millis(), GATHER.as_millis());
        append_info(&log, "four");
        log.append(Entry::Complete("done".into()), Timestamp::UNIX_EPOCH, |_| {});
        let begun = tokio::time::Instant::now();
        assert_eq!(read(reader.next().await), Some(2));
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn the_log_of_a_finished_operation_is_read_whole_and_then_ends() {
        let log = log();
        append_info(&log, "one");
        log.append(Entry::Failed("no".into()), Timestamp::UNIX_EPOCH, |_| {});
        let mut reader = log.reader(None);
        assert_eq!(reader.next().await.map(|entries| entries.len()), Some(2));
        assert_eq!(reader.next().await, None);
    }
}
