//! The history on disk, in one file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use jiff::Timestamp;
use redb::{Database, ReadableDatabase, ReadableTable, Table, TableDefinition};
use wasmspawner_core::names::Username;
use wasmspawner_core::policy::usage::DaysOfUser;
use wasmspawner_core::record::operation_record::OperationRecord;

use super::entry::Shared;

const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("operations");

/// The use of each user day by day, and the last time at which the service was running.
const DAYS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("days");
const SEEN: TableDefinition<'_, &str, i64> = TableDefinition::new("seen");
const LAST_SEEN_KEY: &str = "last";

/// A message to the thread that writes the file.
pub(super) enum Write {
    /// The record has changed or was dropped. The thread writes the state that the record has at the time of the write.
    Changed(Arc<Shared>),
    /// The use of a user; `None` if there is nothing left.
    Days(Username, Option<DaysOfUser>),
    /// The service is running at this time.
    Seen(Timestamp),
    /// Asks for a message once everything that was sent before is on disk.
    Flush(mpsc::SyncSender<()>),
}

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

/// Opens or creates the file. Returns its content, and the channel for changes.
pub(super) fn open(file: &Path) -> Result<(Opened, mpsc::Sender<Write>), HistoryError> {
    let failed = |source: redb::Error| HistoryError { path: file.display().to_string(), source };
    let (database, opened) = match read(file) {
        Ok(opened) => opened,
        // Another process has the file open; moving it aside would take it away from that process.
        Err(redb::Error::DatabaseAlreadyOpen) => return Err(failed(redb::Error::DatabaseAlreadyOpen)),
        Err(error) => {
            let aside = move_aside(file);
            tracing::error!(%error, file = %file.display(), aside = %aside.display(), "the history cannot be read; it is moved aside, and a new one begun");
            read(file).map_err(failed)?
        }
    };
    let (disk, writes) = mpsc::channel();
    std::thread::spawn(move || write_all(&database, &writes));
    Ok((opened, disk))
}

fn read(file: &Path) -> Result<(Database, Opened), redb::Error> {
    let database = Database::create(file)?;
    // A new file gets its tables.
    let writing = database.begin_write()?;
    drop((writing.open_table(RECORDS)?, writing.open_table(DAYS)?, writing.open_table(SEEN)?));
    writing.commit()?;
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

/// Writes in groups: all changes that arrived while the disk was busy go into one transaction, each record once.
fn write_all(database: &Database, writes: &mpsc::Receiver<Write>) {
    while let Ok(first) = writes.recv() {
        let group = std::iter::once(first).chain(writes.try_iter());
        if let Err(error) = write_group(database, group) {
            tracing::error!(%error, "the history could not be written");
        }
    }
}

fn write_group(database: &Database, group: impl Iterator<Item = Write>) -> Result<(), redb::Error> {
    let (mut changed, mut days, mut seen, mut flushed) = (BTreeMap::new(), BTreeMap::new(), None, Vec::new());
    for write in group {
        match write {
            Write::Changed(record) => drop(changed.insert(record.job_id(), record)),
            Write::Days(user, of_user) => drop(days.insert(user, of_user)),
            Write::Seen(now) => seen = Some(now),
            Write::Flush(done) => flushed.push(done),
        }
    }
    let writing = database.begin_write()?;
    {
        let mut table = writing.open_table(RECORDS)?;
        for record in changed.into_values() {
            let (job_id, bytes) = record.on_disk();
            put(&mut table, &job_id, bytes)?;
        }
        let mut table = writing.open_table(DAYS)?;
        for (user, of_user) in days {
            put(&mut table, user.as_str(), of_user.map(|of_user| serde_json::to_vec(&of_user)))?;
        }
        if let Some(now) = seen {
            writing.open_table(SEEN)?.insert(LAST_SEEN_KEY, now.as_second())?;
        }
    }
    writing.commit()?;
    for done in flushed {
        // This fails when the caller of `flush` has stopped waiting.
        let _ = done.try_send(());
    }
    Ok(())
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
