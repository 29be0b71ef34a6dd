//! The registry of labs and their drivers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use tokio::sync::{mpsc, watch};
use wasmspawner_core::lifecycle::LabStatus;
use wasmspawner_core::names::Username;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::spawn_key::{SpawnKey, SpawnKind};
use wasmspawner_core::policy::PresentUse;
use wasmspawner_core::record::LabDescription;

use super::message::Message;
use super::quota_claims::share_of;
use crate::published::snapshot::LabSnapshot;
use crate::published::view::View;

/// The most labs that are kept, after they are gone, for answers to `changes`.
const MAX_GONE: usize = 4096;

/// The labs, their children, and the drivers of both.
#[derive(Default)]
pub(crate) struct Registry {
    handles: HashMap<SpawnKey, Handle>,
    /// The spawns of each user that have a driver.
    of_users: HashMap<Username, HashSet<SpawnKey>>,
    changes: Changes,
}

/// Access to a driver: the channel for messages, and the state that it publishes.
pub(crate) struct Handle {
    pub(crate) inbox: mpsc::UnboundedSender<Box<Message>>,
    pub(crate) view: watch::Receiver<View>,
}

impl Registry {
    pub(crate) fn get(&self, key: &SpawnKey) -> Option<&Handle> {
        self.handles.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SpawnKey, &Handle)> {
        self.handles.iter()
    }

    pub(crate) fn insert(&mut self, key: SpawnKey, handle: Handle) {
        self.of_users.entry(key.lab.user.clone()).or_default().insert(key.clone());
        self.handles.insert(key, handle);
    }

    /// Inserts the first driver of a spawn. Returns false if it has one: there are never two.
    pub(crate) fn insert_first(&mut self, key: &SpawnKey, handle: Handle) -> bool {
        let is_first = !self.handles.contains_key(key);
        if is_first {
            self.insert(key.clone(), handle);
        }
        is_first
    }

    pub(crate) fn remove(&mut self, key: &SpawnKey) {
        self.handles.remove(key);
        if let Some(keys) = self.of_users.get_mut(&key.lab.user) {
            keys.remove(key);
            if keys.is_empty() {
                self.of_users.remove(&key.lab.user);
            }
        }
    }

    /// The spawns of the user, with their drivers.
    fn of_user(&self, user: &Username) -> impl Iterator<Item = (&SpawnKey, &Handle)> {
        let keys = self.of_users.get(user).into_iter().flatten();
        keys.filter_map(|key| self.handles.get_key_value(key))
    }

    /// The present use of a spawn's user, without the spawn itself. Failed spawns do not count.
    pub(crate) fn use_beside(&self, of: &SpawnKey) -> PresentUse {
        let mut present = PresentUse::default();
        for (key, handle) in self.of_user(&of.lab.user).filter(|(key, _)| *key != of) {
            let view = handle.view.borrow();
            if let Some(spawn) = view.snapshot.as_ref().filter(|spawn| spawn.status != LabStatus::Failed) {
                add(&mut present, key.kind(), &spawn.about.description);
            }
        }
        present
    }

    /// The failed labs and children of a user beyond the newest `kept`.
    pub(crate) fn failures_beyond(&self, kept: usize, user: &Username) -> Vec<&Handle> {
        let failed = self.of_user(user).filter_map(|(_, handle)| {
            let view = handle.view.borrow();
            let failed = view.snapshot.as_ref().filter(|spawn| spawn.status == LabStatus::Failed)?;
            Some((failed.about.started_at, handle))
        });
        let mut failed: Vec<_> = failed.collect();
        failed.sort_by_key(|(began, _)| Reverse(*began));
        failed.into_iter().skip(kept).map(|(_, handle)| handle).collect()
    }

    /// The children of a lab.
    pub(crate) fn children(&self, of: &LabKey) -> impl Iterator<Item = (&SpawnKey, &Handle)> {
        self.of_user(&of.user).filter(move |(key, _)| !key.is_lab() && key.lab == *of)
    }

    pub(crate) fn changes(&mut self) -> &mut Changes {
        &mut self.changes
    }
}

/// Counts a spawn. A pool counts with all the workers that it may have.
fn add(present: &mut PresentUse, kind: SpawnKind, description: &LabDescription) {
    match kind {
        SpawnKind::Lab | SpawnKind::Injected => present.labs += 1,
        SpawnKind::Kernel => present.kernels += 1,
        SpawnKind::DaskPool => {
            let workers = description.pool.as_ref().map_or(0, |pool| pool.total().maximum);
            present.dask_pools += 1;
            present.dask_workers = present.dask_workers.saturating_add(workers);
        }
    }
    let share = share_of(description);
    present.cpu_millis = present.cpu_millis.saturating_add(share.cpu_millis);
    present.memory_bytes = present.memory_bytes.saturating_add(share.memory_bytes);
}

/// The revisions at which labs have changed, so that a Hub with ten thousand labs fetches only the changed ones.
#[derive(Default)]
pub(crate) struct Changes {
    last: u64,
    /// The revision at which each lab changed last, and its state then.
    published: HashMap<LabKey, (u64, PublishedStatus)>,
    /// Labs that are gone, by the revision at which they disappeared.
    gone: BTreeMap<u64, LabKey>,
    /// Labs that disappeared up to this revision are not in `gone` any more.
    forgotten: u64,
}

/// The part of a lab's state that `/lab-status` shows.
#[derive(Debug, Clone, PartialEq)]
struct PublishedStatus {
    status: LabStatus,
    pod: wasmspawner_core::lifecycle::PodPresence,
    url: Option<String>,
    message: Option<String>,
    job_id: Option<wasmspawner_core::names::lab::JobId>,
}

impl Changes {
    /// Notes the state of a lab; `None` if it is gone. Makes a new revision only if a published field has changed.
    pub(crate) fn note(&mut self, key: &LabKey, lab: Option<&LabSnapshot>) {
        let Some(lab) = lab else {
            if self.published.remove(key).is_some() {
                self.last += 1;
                self.gone.insert(self.last, key.clone());
                if self.gone.len() > MAX_GONE
                    && let Some((revision, _)) = self.gone.pop_first()
                {
                    self.forgotten = revision;
                }
            }
            return;
        };
        let published = PublishedStatus {
            status: lab.status,
            pod: lab.pod,
            url: lab.url.clone(),
            message: lab.message.clone(),
            job_id: lab.job_id,
        };
        if self.published.get(key).is_none_or(|(_, before)| *before != published) {
            self.last += 1;
            self.published.insert(key.clone(), (self.last, published));
        }
    }

    /// The revision of the last change.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The labs that have changed after a revision, and those that are gone; `None` if the revision is too old or
    /// unknown.
    pub(crate) fn since(&self, revision: u64) -> Option<(Vec<LabKey>, Vec<LabKey>)> {
        if revision > self.last || revision < self.forgotten {
            return None;
        }
        let changed = self.published.iter().filter(|(_, (at, _))| *at > revision).map(|(key, _)| key.clone());
        let gone = self.gone.range(revision + 1..).map(|(_, key)| key.clone());
        let changed: Vec<LabKey> = changed.collect();
        let gone = gone.filter(|key| !self.published.contains_key(key)).collect();
        Some((changed, gone))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wasmspawner_core::lifecycle::PodPresence;

    use super::*;
    use crate::published::snapshot::LabDetails;

    fn key(user: &str) -> LabKey {
        LabKey::default_server(Username::parse(user).unwrap())
    }

    fn lab(user: &str, status: LabStatus) -> LabSnapshot {
        LabSnapshot {
            key: key(user).into(),
            status,
            pod: PodPresence::Present,
            about: Arc::new(LabDetails::default()),
            address: None,
            url: None,
            stage: None,
            reason: None,
            message: None,
            progress: 0,
            job_id: None,
            restarts: 0,
            exit_code: None,
        }
    }

    #[test]
    fn only_labs_that_changed_since_a_revision_are_returned() {
        let mut changes = Changes::default();
        changes.note(&key("ada"), Some(&lab("ada", LabStatus::Starting)));
        changes.note(&key("bob"), Some(&lab("bob", LabStatus::Starting)));
        let before = changes.last();
        changes.note(&key("bob"), Some(&LabSnapshot { progress: 40, ..lab("bob", LabStatus::Starting) }));
        assert_eq!(changes.since(before), Some((Vec::new(), Vec::new())), "progress is no change");
        changes.note(&key("ada"), Some(&lab("ada", LabStatus::Running)));
        changes.note(&key("bob"), None);
        changes.note(&key("bob"), None);
        assert_eq!(changes.since(before), Some((vec![key("ada")], vec![key("bob")])));
        assert_eq!(changes.since(changes.last() + 1), None, "a revision of another process");
    }

    #[test]
    fn changes_since_a_revision_that_is_too_old_are_unknown() {
        let mut changes = Changes::default();
        for number in 0..=MAX_GONE {
            let name = format!("u{number}");
            changes.note(&key(&name), Some(&lab(&name, LabStatus::Running)));
            changes.note(&key(&name), None);
        }
        assert_eq!(changes.since(0), None);
        assert!(changes.since(changes.last() - 5).is_some());
    }
}
