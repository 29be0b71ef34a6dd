//! The history on disk, in one file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use jiff::Timestamp;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use wasmspawner_core::operation_record::OperationRecord;

use super::entry::Shared;

const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("operations");

/// A message to the thread that writes the file.
pub(super) enum Write {
    /// The record has changed or was dropped. The thread writes the state that the record has at the time of the write.
    Changed(Arc<Shared>),
    /// Asks for a message once everything that was sent before is on disk.
    Flush(mpsc::SyncSender<()>),
}

/// The history's file cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the history {path} cannot be opened")]
pub struct HistoryError {
    path: String,
    #[source]
    source: redb::Error,
}

/// Opens or creates the file. Returns the records in it, oldest first, and the channel for changes.
pub(super) fn open(file: &Path) -> Result<(Vec<OperationRecord>, mpsc::Sender<Write>), HistoryError> {
    let failed = |source: redb::Error| HistoryError { path: file.display().to_string(), source };
    let (database, records) = match read(file) {
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
    Ok((records, disk))
}

fn read(file: &Path) -> Result<(Database, Vec<OperationRecord>), redb::Error> {
    let database = Database::create(file)?;
    let records = read_all(&database)?;
    Ok((database, records))
}

/// Renames a file that cannot be read, so that an operator can inspect it.
fn move_aside(file: &Path) -> PathBuf {
    let aside = file.with_extension(format!("broken-{}", Timestamp::now().as_second()));
    if let Err(error) = std::fs::rename(file, &aside) {
        tracing::error!(%error, file = %file.display(), "the file cannot be moved aside");
    }
    aside
}

fn read_all(database: &Database) -> Result<Vec<OperationRecord>, redb::Error> {
    let mut records = Vec::new();
    let reading = database.begin_read()?;
    let table = match reading.open_table(RECORDS) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(records),
        Err(error) => return Err(error.into()),
    };
    // The keys are job ids, which sort by time, so the newest record comes last.
    for entry in table.iter()? {
        let (_, bytes) = entry?;
        match serde_json::from_slice::<OperationRecord>(bytes.value()) {
            Ok(record) => records.push(record),
            Err(error) => tracing::warn!(%error, "a record of another version is left out of the history"),
        }
    }
    Ok(records)
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
    let (mut changed, mut flushed) = (BTreeMap::new(), Vec::new());
    for write in group {
        match write {
            Write::Changed(record) => drop(changed.insert(record.job_id(), record)),
            Write::Flush(done) => flushed.push(done),
        }
    }
    let writing = database.begin_write()?;
    {
        let mut table = writing.open_table(RECORDS)?;
        for record in changed.into_values() {
            match record.on_disk() {
                (job_id, Some(Ok(bytes))) => drop(table.insert(job_id.as_str(), bytes.as_slice())?),
                (job_id, None) => drop(table.remove(job_id.as_str())?),
                (_, Some(Err(error))) => tracing::error!(%error, "a record could not be written down"),
            }
        }
    }
    writing.commit()?;
    for done in flushed {
        // This fails when the caller of `flush` has stopped waiting.
        let _ = done.try_send(());
    }
    Ok(())
}
