//! Records that this version of the service cannot read: their labs may run, so they are neither gone nor orphans.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_kubernetes::records::UnreadableRecord;

use super::Labs;
use crate::errors::SpawnError;

/// The records that cannot be read, by their uids.
#[derive(Default)]
pub(crate) struct UnreadableRecords(Mutex<BTreeMap<String, UnreadableRecord>>);

impl UnreadableRecords {
    /// Notes the records of a list that cannot be read. `before` are the uids that were known before the list was read:
    /// what is not in it is gone. A record that `is_read` stays until a driver has it.
    pub(crate) fn listed(
        &self,
        before: &[String],
        is_read: impl Fn(&str) -> bool,
        records: Vec<UnreadableRecord>,
    ) {
        let is_listed = |uid: &str| is_read(uid) || records.iter().any(|record| record.uid == uid);
        for uid in before.iter().filter(|uid| !is_listed(uid)) {
            self.remove(uid);
        }
        for record in records {
            self.add(record);
        }
    }

    /// Notes a record that cannot be read, or from which no driver can be made.
    pub(crate) fn add(&self, record: UnreadableRecord) {
        let mut known = self.lock();
        if !known.contains_key(&record.uid) {
            log(&record);
        }
        known.insert(record.uid.clone(), record);
    }

    /// Forgets a record whose lab has a driver, or that is gone.
    pub(crate) fn remove(&self, uid: &str) {
        self.lock().remove(uid);
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The uids of the records.
    pub(crate) fn uids(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// The name of the record of this lab or child, if it cannot be read.
    pub(crate) fn record_of(&self, key: &SpawnKey) -> Option<String> {
        let known = self.lock();
        if known.is_empty() {
            return None;
        }
        let name = key.object_name();
        known.values().find(|record| record.name == name.as_str()).map(|record| record.name.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, UnreadableRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log(record: &UnreadableRecord) {
    let UnreadableRecord { name, problem, .. } = record;
    tracing::error!(
        name,
        problem,
        "the record of a spawn cannot be read, so its lab is left as it is and cannot be used; run the version of the service that wrote it, or correct the record"
    );
}

impl Labs {
    /// Fails if the record of this lab or child cannot be read: it may run, although the service knows nothing of it. The
    /// lab is looked for afterwards: one that is adopted meanwhile is known before its record counts as readable.
    pub fn require_readable(&self, key: &SpawnKey) -> Result<(), SpawnError> {
        if self.lab(key).is_some() {
            return Ok(());
        }
        match self.unreadable().record_of(key) {
            Some(name) => Err(SpawnError::UnreadableRecord { name }),
            None => Ok(()),
        }
    }

    /// Fails if there is any record that cannot be read. Nothing may be deleted then that its lab might use.
    pub(crate) fn require_all_readable(&self) -> Result<(), SpawnError> {
        match self.count_unreadable() {
            0 => Ok(()),
            unreadable => Err(SpawnError::UnreadableRecords(unreadable)),
        }
    }

    /// The number of records that cannot be read.
    pub fn count_unreadable(&self) -> usize {
        self.unreadable().len()
    }
}
