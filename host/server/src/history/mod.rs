//! What happened in each operation, on the service's own disk, for a while.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use wasmspawner_core::lab::{JobId, LabKey};
use wasmspawner_core::lifecycle::{Failure, Outcome};
use wasmspawner_core::progress::OperationRecord;

const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("operations");

/// Operations that are remembered of one lab.
const MOST_OF_ONE_LAB: usize = 100;

/// How long the end of the service waits for the disk.
const FLUSH: Duration = Duration::from_secs(5);

/// The records of operations, newest first, kept for a while. Reads come from memory; a thread of its own writes what
/// happened to the disk, so that no spawn waits for it.
#[derive(Clone)]
pub struct History {
    records: Arc<RwLock<Records>>,
    disk: Option<mpsc::Sender<Write>>,
    keep: SignedDuration,
}

type Records = HashMap<LabKey, VecDeque<Arc<OperationRecord>>>;

enum Write {
    Put(Arc<OperationRecord>),
    Remove(Vec<String>),
    Flush(mpsc::SyncSender<()>),
}

/// The history cannot be kept in this file.
#[derive(Debug, thiserror::Error)]
#[error("the history {path} cannot be opened")]
pub struct HistoryError {
    path: String,
    #[source]
    source: redb::Error,
}

impl History {
    /// A history that is lost with the process.
    pub fn in_memory(keep: SignedDuration) -> Self {
        Self { records: Arc::default(), disk: None, keep }
    }

    /// Opens, or makes, the history in `file`.
    pub fn open(file: &Path, keep: SignedDuration) -> Result<Self, HistoryError> {
        let failed = |source: redb::Error| HistoryError { path: file.display().to_string(), source };
        let (database, records) = match open(file) {
            Ok(opened) => opened,
            // Another process uses it: moving it aside would take it away from that one.
            Err(redb::Error::DatabaseAlreadyOpen) => return Err(failed(redb::Error::DatabaseAlreadyOpen)),
            Err(error) => {
                let aside = move_aside(file);
                tracing::error!(%error, file = %file.display(), aside = %aside.display(), "the history cannot be read; it is moved aside, and a new one begun");
                open(file).map_err(failed)?
            }
        };
        let (disk, writes) = mpsc::channel();
        std::thread::spawn(move || write_all(&database, &writes));
        Ok(Self { records: Arc::new(RwLock::new(records)), disk: Some(disk), keep })
    }

    /// Keeps a record, in place of an earlier one of the same operation.
    pub fn put(&self, record: &OperationRecord) {
        let record = Arc::new(record.clone());
        {
            let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
            let of_lab = records.entry(record.key.clone()).or_default();
            match of_lab.iter_mut().find(|known| known.job_id == record.job_id) {
                Some(known) => *known = Arc::clone(&record),
                None => of_lab.push_front(Arc::clone(&record)),
            }
            of_lab.truncate(MOST_OF_ONE_LAB);
        }
        self.write(Write::Put(record));
    }

    /// The records of a lab, newest first.
    pub fn of(&self, key: &LabKey) -> Vec<Arc<OperationRecord>> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        records.get(key).map(|of_lab| of_lab.iter().cloned().collect()).unwrap_or_default()
    }

    /// Closes what a crash left open, but for operations that still go on: `going_on` names the one of a lab.
    pub fn close_interrupted(&self, now: Timestamp, going_on: impl Fn(&LabKey) -> Option<JobId>) {
        let open: Vec<Arc<OperationRecord>> = {
            let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
            records.values().flatten().filter(|record| record.ended_at.is_none()).cloned().collect()
        };
        for record in open.iter().filter(|record| going_on(&record.key) != Some(record.job_id)) {
            let mut record = OperationRecord::clone(record);
            let message = "The service ended before this operation did";
            record.end(Outcome::Failed(Failure::service("Interrupted", message)), now);
            self.put(&record);
        }
    }

    /// Forgets what is too old.
    pub fn expire(&self, now: Timestamp) {
        let Ok(oldest) = now.checked_sub(self.keep) else { return };
        let mut expired = Vec::new();
        {
            let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
            for of_lab in records.values_mut() {
                of_lab.retain(|record| {
                    let keep = record.started_at >= oldest;
                    if !keep {
                        expired.push(record.job_id.to_string());
                    }
                    keep
                });
            }
            records.retain(|_, of_lab| !of_lab.is_empty());
        }
        if !expired.is_empty() {
            self.write(Write::Remove(expired));
        }
    }

    /// Waits, for a while, until everything is on the disk. For the end of the service.
    pub fn flush(&self) {
        let (done, written) = mpsc::sync_channel(1);
        self.write(Write::Flush(done));
        if self.disk.is_some() && written.recv_timeout(FLUSH).is_err() {
            tracing::error!("the last of the history may not be on the disk");
        }
    }

    fn write(&self, write: Write) {
        if let Some(disk) = &self.disk {
            // The thread ends only with the last sender.
            let _ = disk.send(write);
        }
    }
}

fn open(file: &Path) -> Result<(Database, Records), redb::Error> {
    let database = Database::create(file)?;
    let records = read_all(&database)?;
    Ok((database, records))
}

/// Renames a file that cannot be read, so that somebody can look at it.
fn move_aside(file: &Path) -> PathBuf {
    let aside = file.with_extension(format!("broken-{}", Timestamp::now().as_second()));
    if let Err(error) = std::fs::rename(file, &aside) {
        tracing::error!(%error, file = %file.display(), "the file cannot be moved aside");
    }
    aside
}

fn read_all(database: &Database) -> Result<Records, redb::Error> {
    let mut records = Records::new();
    let reading = database.begin_read()?;
    let table = match reading.open_table(RECORDS) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(records),
        Err(error) => return Err(error.into()),
    };
    // Job ids sort by time, so the newest come last.
    for entry in table.iter()? {
        let (_, bytes) = entry?;
        match serde_json::from_slice::<OperationRecord>(bytes.value()) {
            Ok(record) => records.entry(record.key.clone()).or_default().push_front(Arc::new(record)),
            Err(error) => tracing::warn!(%error, "a record of another version is left out of the history"),
        }
    }
    Ok(records)
}

/// Writes in groups: what came while the disk was busy goes into one transaction.
fn write_all(database: &Database, writes: &mpsc::Receiver<Write>) {
    while let Ok(first) = writes.recv() {
        let group = std::iter::once(first).chain(writes.try_iter());
        if let Err(error) = write_group(database, group) {
            tracing::error!(%error, "the history could not be written");
        }
    }
}

fn write_group(database: &Database, group: impl Iterator<Item = Write>) -> Result<(), redb::Error> {
    let mut flushed = Vec::new();
    let writing = database.begin_write()?;
    {
        let mut table = writing.open_table(RECORDS)?;
        for write in group {
            match write {
                Write::Put(record) => match serde_json::to_vec(&*record) {
                    Ok(bytes) => drop(table.insert(record.job_id.to_string().as_str(), bytes.as_slice())?),
                    Err(error) => tracing::error!(%error, "a record could not be written down"),
                },
                Write::Flush(done) => flushed.push(done),
                Write::Remove(job_ids) => {
                    for job_id in job_ids {
                        table.remove(job_id.as_str())?;
                    }
                }
            }
        }
    }
    writing.commit()?;
    for done in flushed {
        // Whoever waited for too long is gone.
        let _ = done.try_send(());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wasmspawner_core::lab::JobId;
    use wasmspawner_core::lifecycle::{Operation, OperationKind};
    use wasmspawner_core::names::Username;

    use super::*;

    fn record(number: u128, started_at: Timestamp) -> OperationRecord {
        let operation = Operation {
            job_id: JobId::new(uuid::Uuid::from_u128(number)),
            kind: OperationKind::Spawn,
            started_at,
            deadline: started_at,
        };
        OperationRecord::begin(key(), &operation)
    }

    fn key() -> LabKey {
        LabKey::default_server(Username::parse("ada").unwrap())
    }

    fn job_ids(history: &History) -> Vec<String> {
        history.of(&key()).iter().map(|record| record.job_id.to_string()[30..].to_owned()).collect()
    }

    #[test]
    fn a_history_survives_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.redb");
        let history = History::open(&file, SignedDuration::from_hours(48)).unwrap();
        history.put(&record(1, Timestamp::UNIX_EPOCH));
        history.put(&record(2, Timestamp::UNIX_EPOCH));
        history.flush();
        drop(history);
        // The writing thread lets go of the file when it has written everything.
        let reopened = std::iter::from_fn(|| {
            std::thread::yield_now();
            Some(History::open(&file, SignedDuration::from_hours(48)))
        })
        .take(1_000_000)
        .find_map(Result::ok)
        .unwrap();
        assert_eq!(job_ids(&reopened), ["000002", "000001"]);
    }

    #[test]
    fn a_history_that_cannot_be_read_is_moved_aside() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.redb");
        std::fs::write(&file, "this is no database, but it is long enough to be looked at as one").unwrap();
        let history = History::open(&file, SignedDuration::from_hours(48)).unwrap();
        history.put(&record(1, Timestamp::UNIX_EPOCH));
        assert_eq!(job_ids(&history), ["000001"]);
        let names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.iter().any(|name| name.to_string_lossy().starts_with("history.broken-")), "{names:?}");
    }

    #[test]
    fn what_a_crash_left_open_is_closed() {
        let history = History::in_memory(SignedDuration::from_hours(1));
        history.put(&record(1, Timestamp::UNIX_EPOCH));
        history.put(&record(2, Timestamp::UNIX_EPOCH));
        let going_on = JobId::new(uuid::Uuid::from_u128(2));
        history.close_interrupted(Timestamp::UNIX_EPOCH, |_| Some(going_on));
        let open: Vec<bool> = history.of(&key()).iter().map(|record| record.ended_at.is_none()).collect();
        assert_eq!(
            (job_ids(&history), open),
            (vec!["000002".to_owned(), "000001".to_owned()], vec![true, false])
        );
    }

    #[test]
    fn what_is_too_old_is_forgotten() {
        let history = History::in_memory(SignedDuration::from_hours(1));
        history.put(&record(1, Timestamp::UNIX_EPOCH));
        history.put(&record(2, Timestamp::UNIX_EPOCH + SignedDuration::from_hours(2)));
        history.expire(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(2));
        assert_eq!(job_ids(&history), ["000002"]);
    }
}
