//! The records in memory, and the order in which they are dropped.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::SpawnKey;

use super::entry::Shared;

/// The records of all labs. Methods that drop records return them, so that the caller can delete them from disk.
#[derive(Default)]
pub(super) struct HistoryRecords {
    /// The records of each lab, newest first.
    of_labs: HashMap<SpawnKey, VecDeque<Arc<Shared>>>,
    by_job: HashMap<JobId, Arc<Shared>>,
    /// The records of ended operations, ordered by the time of their end.
    ended: BTreeMap<(Timestamp, JobId), SpawnKey>,
}

impl HistoryRecords {
    pub(super) fn len(&self) -> usize {
        self.by_job.len()
    }

    pub(super) fn find(&self, job_id: JobId) -> Option<&Arc<Shared>> {
        self.by_job.get(&job_id)
    }

    pub(super) fn operations(&self, key: &SpawnKey) -> impl Iterator<Item = &Arc<Shared>> {
        self.of_labs.get(key).into_iter().flatten()
    }

    pub(super) fn open(&self) -> Vec<Arc<Shared>> {
        let all = self.of_labs.values().flatten();
        all.filter(|record| record.ended_at().is_none()).cloned().collect()
    }

    /// Adds a record. There must be no record of this operation yet. Ids sort by the time at which operations began.
    pub(super) fn add(&mut self, key: &SpawnKey, record: Arc<Shared>) {
        self.end(key, &record);
        let of_lab = self.of_labs.entry(key.clone()).or_default();
        let place = of_lab.partition_point(|known| known.job_id() > record.job_id());
        of_lab.insert(place, Arc::clone(&record));
        self.by_job.insert(record.job_id(), record);
    }

    /// Lists the record among the ended ones, if its operation has ended.
    pub(super) fn end(&mut self, key: &SpawnKey, record: &Shared) {
        if let Some(ended_at) = record.ended_at() {
            self.ended.insert((ended_at, record.job_id()), key.clone());
        }
    }

    /// Drops records until the lab has at most `of_one_lab` and all labs together have at most `in_all`. Operations
    /// that ended first are dropped first; operations under way are never dropped.
    pub(super) fn drop_above(
        &mut self,
        key: &SpawnKey,
        of_one_lab: usize,
        in_all: usize,
    ) -> Vec<Arc<Shared>> {
        let mut dropped = Vec::new();
        let of_lab: Vec<Arc<Shared>> = self.operations(key).skip(of_one_lab).cloned().collect();
        for record in of_lab {
            if let Some(ended_at) = record.ended_at() {
                self.ended.remove(&(ended_at, record.job_id()));
                dropped.extend(self.take(key, record.job_id()));
            }
        }
        while self.len() > in_all
            && let Some(((_, job_id), key)) = self.ended.pop_first()
        {
            dropped.extend(self.take(&key, job_id));
        }
        dropped
    }

    /// Drops the records of operations that ended before `oldest`.
    pub(super) fn drop_before(&mut self, oldest: Timestamp) -> Vec<Arc<Shared>> {
        let mut dropped = Vec::new();
        while let Some(first) = self.ended.first_entry()
            && first.key().0 < oldest
        {
            let ((_, job_id), key) = first.remove_entry();
            dropped.extend(self.take(&key, job_id));
        }
        dropped
    }

    fn take(&mut self, key: &SpawnKey, job_id: JobId) -> Option<Arc<Shared>> {
        let of_lab = self.of_labs.get_mut(key)?;
        let at = of_lab.iter().position(|record| record.job_id() == job_id)?;
        let taken = of_lab.remove(at);
        if of_lab.is_empty() {
            self.of_labs.remove(key);
        }
        self.by_job.remove(&job_id);
        taken
    }
}
