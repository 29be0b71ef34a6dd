//! The objects on disk, where they survive a restart.
//!
//! One thread writes. It puts all changes that were queued while it was busy into one transaction (group commit). The
//! transaction is synced to the disk before the requests that made the changes are answered. So acknowledged changes
//! survive a crash, and many concurrent writers share the cost of a sync. A watch may see a change slightly before it
//! is on disk, and a crash may then lose that change's revision. To never use such a revision again, each start begins
//! [`GAP`] revisions later, and watches from before the restart get a 410.

use super::transaction::Write;
use super::{CollectionName, Object};
use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::{self, Document};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use tokio::sync::oneshot;

/// `collection NUL namespace NUL name` -> JSON.
const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
/// `revision` -> the latest one written.
const COUNTERS: TableDefinition<'_, &str, u64> = TableDefinition::new("counters");
const REVISION: &str = "revision";

/// The distance between the last revision on disk and the first one after a start. It is larger than the number of
/// changes that can be written between two syncs.
const GAP: u64 = 100_000;

/// The error that prevents the state from being opened.
pub(crate) type DiskError = Box<dyn std::error::Error + Send + Sync>;

/// The state that was on disk.
pub(crate) struct Found {
    /// The revision to continue from.
    pub(super) revision: u64,
    pub(super) objects: Vec<(CollectionName, Object)>,
}

struct Batch {
    writes: Vec<Write>,
    revision: u64,
    done: oneshot::Sender<()>,
}

/// The writer thread. Dropping it waits until all queued changes are on disk.
pub(crate) struct Disk {
    queue: Option<mpsc::Sender<Batch>>,
    writer: Option<thread::JoinHandle<()>>,
}

impl Disk {
    /// Opens or creates the file.
    pub(crate) fn open(path: &Path) -> Result<(Self, Found), DiskError> {
        let database = Database::create(path)?;
        let found = load(&database)?;
        let (queue, batches) = mpsc::channel();
        let writer = thread::Builder::new()
            .name("apiserver-disk".to_owned())
            .spawn(move || write_all(&database, &batches))?;
        Ok((Self { queue: Some(queue), writer: Some(writer) }, found))
    }

    /// Queues changes for the writer thread, which keeps the order of the calls.
    pub(super) fn queue(&self, writes: Vec<Write>, revision: u64) -> Durable {
        let (done, written) = oneshot::channel();
        if let Some(queue) = &self.queue {
            // A dead writer drops `done`, which fails the request.
            let _ = queue.send(Batch { writes, revision, done });
        }
        Durable(Some(written))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// The moment from which a change survives a crash.
#[must_use = "an answer has to wait until the change is on disk"]
pub(crate) struct Durable(Option<oneshot::Receiver<()>>);

impl Durable {
    /// Returns a moment that has already been reached.
    pub(super) fn now() -> Self {
        Self(None)
    }

    /// Waits until the change is on disk.
    pub(crate) async fn reached(self) -> Result<(), Failure> {
        match self.0 {
            None => Ok(()),
            Some(written) => written
                .await
                .map_err(|_| Failure::internal("the change could not be written to the state directory")),
        }
    }
}

fn load(database: &Database) -> Result<Found, DiskError> {
    // Creates the tables on the first start. On a read-only disk, this fails now and not at the first write.
    let transaction = database.begin_write()?;
    let revision = {
        transaction.open_table(OBJECTS)?;
        let mut counters = transaction.open_table(COUNTERS)?;
        let last = counters.get(REVISION)?.map_or(0, |value| value.value());
        counters.insert(REVISION, last + GAP)?;
        last + GAP
    };
    transaction.commit()?;

    let mut objects = Vec::new();
    for entry in database.begin_read()?.open_table(OBJECTS)?.iter()? {
        let (key, json) = entry?;
        let document: Document = serde_json::from_slice(json.value())
            .map_err(|error| format!("entry {:?} is not an object: {error}", key.value()))?;
        let collection = key.value().split('\0').next().unwrap_or_default();
        let revision = metadata::text(&document, "resourceVersion").parse().unwrap_or(0);
        objects.push((CollectionName::from(collection), Object::new(document, revision)));
    }
    Ok(Found { revision, objects })
}

fn write_all(database: &Database, batches: &mpsc::Receiver<Batch>) {
    while let Ok(first) = batches.recv() {
        let group: Vec<Batch> = std::iter::once(first).chain(batches.try_iter()).collect();
        if let Err(error) = write(database, &group) {
            // Dropping the group answers its requests with 500. Continuing would leave gaps in the state on disk.
            tracing::error!(%error, "the state directory cannot be written, changes are refused from now on");
            return;
        }
        for batch in group {
            let _ = batch.done.send(());
        }
    }
}

fn write(database: &Database, group: &[Batch]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for Write { collection, key, object } in group.iter().flat_map(|batch| &batch.writes) {
            let row = format!("{collection}\0{}\0{}", key.namespace, key.name);
            match object {
                Some(object) => objects.insert(row.as_str(), object.json().as_ref())?,
                None => objects.remove(row.as_str())?,
            };
        }
        let mut counters = transaction.open_table(COUNTERS)?;
        if let Some(last) = group.last() {
            counters.insert(REVISION, last.revision)?;
        }
    }
    transaction.commit()?;
    Ok(())
}
