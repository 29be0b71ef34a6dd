//! The history on disk, in one file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use redb::{Database, ReadableDatabase, ReadableTable, Table, TableDefinition};
use wasmspawner_core::names::Username;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::policy::usage::DaysOfUser;
use wasmspawner_core::record::operation_record::OperationRecord;

use super::entry::Shared;
use super::store::{Store, Write};

const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("operations");

/// The use of each user day by day, and the last time at which the service was running.
const DAYS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("days");
const SEEN: TableDefinition<'_, &str, i64> = TableDefinition::new("seen");
const LAST_SEEN_KEY: &str = "last";

/// The content of the file.
#[derive(Default)]
pub(super) struct Opened {
    /// Oldest first.
    pub(super) records: Vec<OperationRecord>,
    pub(super) days: Vec<(Username, DaysOfUser)>,
    pub(super) last_seen: Option<Timestamp>,
}

/// The history's file cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the history {path} cannot be opened")]
pub struct HistoryError {
    path: String,
    #[source]
    source: redb::Error,
}

/// The pause before a write that has failed is tried again. It doubles with each further failure, up to `MAX_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Opens or creates the file. Returns its content, and the writer of changes. A new file that the disk has no room for is
/// created later.
pub(super) fn open(file: &Path) -> Result<(Opened, Disk), HistoryError> {
    let failed = |source: redb::Error| HistoryError { path: file.display().to_string(), source };
    let is_new = !file.exists();
    let (database, opened) = match or_anew(file, read) {
        Ok((database, opened)) => (Some(database), opened),
        Err(error) if is_new => {
            tracing::error!(%error, file = %file.display(), "the history cannot be written; it is kept in memory, and tried again");
            (None, Opened::default())
        }
        // The content would be overwritten later. Another process may have the file open.
        Err(error) => return Err(failed(error)),
    };
    let failing = Arc::new(AtomicBool::new(database.is_none()));
    let (sender, writes) = mpsc::channel();
    let thread = Writer { file: file.to_owned(), database, failing: Arc::clone(&failing) };
    std::thread::spawn(move || thread.write_all(&writes));
    Ok((opened, Disk { sender, failing }))
}

/// Opens the file in this way. One whose content cannot be used is moved aside, and a new one begun.
fn or_anew<T>(file: &Path, open: impl Fn(&Path) -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    match open(file) {
        Err(error) if is_broken(&error) => {
            let aside = move_aside(file);
            tracing::error!(%error, file = %file.display(), aside = %aside.display(), "the history cannot be read; it is moved aside, and a new one begun");
            open(file)
        }
        opened => opened,
    }
}

/// True if the content of the file cannot be used, and not only the disk or the moment is to blame.
fn is_broken(error: &redb::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    match error {
        redb::Error::Io(error) => matches!(error.kind(), InvalidData | UnexpectedEof),
        redb::Error::DatabaseAlreadyOpen | redb::Error::PreviousIo => false,
        _ => true,
    }
}

/// Sends changes to the thread that writes the file.
pub(super) struct Disk {
    sender: mpsc::Sender<Write>,
    failing: Arc<AtomicBool>,
}

impl Store for Disk {
    fn send(&self, write: Write) {
        // The thread runs until the last sender is gone, so this cannot fail.
        let _ = self.sender.send(write);
    }

    fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }
}

/// Opens or creates the file. One that could only be begun is removed: it could not be opened later.
fn create(file: &Path) -> Result<Database, redb::Error> {
    let is_new = !file.exists();
    let created = Database::create(file).map_err(redb::Error::from).and_then(with_tables);
    if created.is_err() && is_new {
        let _ = std::fs::remove_file(file);
    }
    created
}

fn with_tables(database: Database) -> Result<Database, redb::Error> {
    let writing = database.begin_write()?;
    drop((writing.open_table(RECORDS)?, writing.open_table(DAYS)?, writing.open_table(SEEN)?));
    writing.commit()?;
    Ok(database)
}

fn read(file: &Path) -> Result<(Database, Opened), redb::Error> {
    let database = create(file)?;
    let opened = read_all(&database)?;
    Ok((database, opened))
}

/// Renames a file that cannot be read, so that an operator can inspect it.
fn move_aside(file: &Path) -> PathBuf {
    let aside = file.with_extension(format!("broken-{}", Timestamp::now().as_second()));
    if let Err(error) = std::fs::rename(file, &aside) {
        tracing::error!(%error, file = %file.display(), "the file cannot be moved aside");
    }
    aside
}

fn read_all(database: &Database) -> Result<Opened, redb::Error> {
    let reading = database.begin_read()?;
    let mut opened = Opened::default();
    // The keys are job ids, which sort by time, so the newest record comes last.
    for entry in reading.open_table(RECORDS)?.iter()? {
        let (_, bytes) = entry?;
        match serde_json::from_slice(bytes.value()) {
            Ok(record) => opened.records.push(record),
            Err(error) => tracing::warn!(%error, "a record of another version is left out of the history"),
        }
    }
    for entry in reading.open_table(DAYS)?.iter()? {
        let (user, bytes) = entry?;
        match (Username::parse(user.value()), serde_json::from_slice(bytes.value())) {
            (Ok(user), Ok(days)) => opened.days.push((user, days)),
            (_, days) => {
                tracing::warn!(error = ?days.err(), "what a user has used is left out: another version has written it");
            }
        }
    }
    let last = reading.open_table(SEEN)?.get(LAST_SEEN_KEY)?;
    opened.last_seen = last.and_then(|last| Timestamp::from_second(last.value()).ok());
    Ok(opened)
}

/// The changes that are not on the disk yet, each once.
#[derive(Default)]
struct Pending {
    changed: BTreeMap<JobId, Arc<Shared>>,
    days: BTreeMap<Username, Option<DaysOfUser>>,
    seen: Option<Timestamp>,
    flushes: Vec<mpsc::SyncSender<()>>,
}

impl Pending {
    fn add(&mut self, write: Write) {
        match write {
            Write::Changed(record, _) => drop(self.changed.insert(record.job_id(), record)),
            Write::Days(user, of_user) => drop(self.days.insert(user, of_user)),
            Write::Seen(now) => self.seen = Some(now),
            Write::Flush(done) => self.flushes.push(done),
        }
    }

    fn write_to(&self, database: &Database) -> Result<(), redb::Error> {
        let writing = database.begin_write()?;
        {
            let mut table = writing.open_table(RECORDS)?;
            for (job_id, record) in &self.changed {
                put(&mut table, &job_id.to_string(), record.to_json())?;
            }
            let mut table = writing.open_table(DAYS)?;
            for (user, of_user) in &self.days {
                put(&mut table, user.as_str(), of_user.as_ref().map(serde_json::to_vec))?;
            }
            if let Some(now) = self.seen {
                writing.open_table(SEEN)?.insert(LAST_SEEN_KEY, now.as_second())?;
            }
        }
        Ok(writing.commit()?)
    }
}

/// The thread that writes the file.
struct Writer {
    file: PathBuf,
    /// `None` after a failure: the file is opened anew, because a database refuses all writes after one.
    database: Option<Database>,
    failing: Arc<AtomicBool>,
}

impl Writer {
    /// Writes in groups: all changes that arrived while the disk was busy go into one transaction, each record once. What
    /// cannot be written is kept, and tried again.
    fn write_all(mut self, writes: &mpsc::Receiver<Write>) {
        let (mut pending, mut pause) = (Pending::default(), FIRST_PAUSE);
        let mut again_at = self.database.is_none().then(|| Instant::now() + pause);
        loop {
            let received = match again_at {
                None => writes.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => writes.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match received {
                Ok(write) => {
                    std::iter::once(write).chain(writes.try_iter()).for_each(|write| pending.add(write));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let is_due = again_at.is_none_or(|at| Instant::now() >= at) || !pending.flushes.is_empty();
            if !is_due {
                continue;
            }
            match self.write(&pending) {
                Ok(()) => {
                    if self.failing.swap(false, Ordering::Relaxed) {
                        tracing::info!("the history is written again");
                    }
                    for done in std::mem::take(&mut pending).flushes {
                        // This fails when the caller of `flush` has stopped waiting.
                        let _ = done.try_send(());
                    }
                    (again_at, pause) = (None, FIRST_PAUSE);
                }
                Err(error) => {
                    if !self.failing.swap(true, Ordering::Relaxed) {
                        tracing::error!(%error, file = %self.file.display(), "the history could not be written; it is kept in memory, and tried again");
                    }
                    self.database = None;
                    // The callers of `flush` are told at once.
                    pending.flushes.clear();
                    again_at = Some(Instant::now() + pause);
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
    }

    fn write(&mut self, pending: &Pending) -> Result<(), redb::Error> {
        let database = match self.database.take() {
            Some(database) => database,
            None => or_anew(&self.file, create)?,
        };
        pending.write_to(self.database.insert(database))
    }
}

fn put(
    table: &mut Table<'_, &str, &[u8]>,
    key: &str,
    bytes: Option<serde_json::Result<Vec<u8>>>,
) -> Result<(), redb::Error> {
    match bytes {
        Some(Ok(bytes)) => drop(table.insert(key, bytes.as_slice())?),
        None => drop(table.remove(key)?),
        Some(Err(error)) => tracing::error!(%error, key, "a part of the history could not be written down"),
    }
    Ok(())
}
