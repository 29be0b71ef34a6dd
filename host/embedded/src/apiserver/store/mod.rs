//! The objects, their history, and one revision counter for all of them.
//!
//! All operations happen in memory under one lock, which is held for microseconds and never during IO. Each kind keeps
//! a window of its latest changes. Watches and paged lists read from it, and fail with 410 if they need older changes.
//! With a state directory, every change is also written to disk, see [`disk`].

mod collection;
pub(super) mod disk;
mod object;
mod transaction;

pub(super) use collection::{Change, ChangeKind};
pub(super) use object::{Key, Object};
pub(super) use transaction::Transaction;

use super::failure::Failure;
use collection::{Collection, Listing};
use disk::{Disk, Durable};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::watch;

/// The name of a kind in the store: `plural.group`, independent of the API version.
pub(super) type CollectionName = Arc<str>;

pub(super) struct State {
    revision: u64,
    /// The revision at the start. Earlier changes are not remembered.
    opened: u64,
    collections: HashMap<CollectionName, Collection>,
    /// The dependents of each owner, by the owner's uid.
    dependents: HashMap<String, BTreeSet<(CollectionName, Key)>>,
    window: usize,
}

impl State {
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn get(&self, collection: &str, key: &Key) -> Option<&Arc<Object>> {
        self.collections.get(collection)?.get(key)
    }

    /// Returns the objects of a collection.
    pub(super) fn all(&self, collection: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.collections.get(collection).into_iter().flat_map(|c| c.range(None, None))
    }

    /// Returns the objects of a collection in one namespace.
    pub(super) fn in_namespace<'a>(
        &'a self,
        collection: &str,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        self.collections.get(collection).into_iter().flat_map(move |c| c.range(Some(namespace), None))
    }

    /// Returns the names of all collections.
    pub(super) fn collections(&self) -> impl Iterator<Item = &CollectionName> {
        self.collections.keys()
    }

    fn collection(&mut self, name: &CollectionName) -> &mut Collection {
        let (opened, window) = (self.opened, self.window);
        self.collections.entry(name.clone()).or_insert_with(|| Collection::new(opened, window))
    }
}

pub(super) struct Store {
    state: RwLock<State>,
    disk: Option<Disk>,
}

impl Store {
    /// Creates an empty store, or loads the one from disk. Each kind remembers its latest `window` changes.
    pub(super) fn new(window: usize, disk: Option<(Disk, disk::Found)>) -> Self {
        let mut state =
            State { revision: 1, opened: 1, collections: HashMap::new(), dependents: HashMap::new(), window };
        let disk = disk.map(|(disk, found)| {
            (state.revision, state.opened) = (found.revision, found.revision);
            for (collection, object) in found.objects {
                transaction::index_owners(&mut state.dependents, &collection, None, Some(&object));
                state.collection(&collection).load(Arc::new(object));
            }
            disk
        });
        Self { state: RwLock::new(state), disk }
    }

    /// Locks the store for reading. The lock must be held briefly, and never over an `await`.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, collection: &str, key: &Key) -> Option<Arc<Object>> {
        self.read().get(collection, key).cloned()
    }

    /// Lists objects of a kind after `from`, in one namespace or in all, as they are now or were at revision `at`.
    pub(super) fn list(
        &self,
        collection: &CollectionName,
        namespace: Option<&str>,
        from: Option<&Key>,
        at: Option<u64>,
    ) -> Result<Listing, Failure> {
        let state = self.read();
        let revision = state.revision;
        if let Some(asked) = at.filter(|at| *at > revision) {
            return Err(Failure::too_large_revision(asked, revision));
        }
        match state.collections.get(collection) {
            None => Ok((revision, Vec::new())),
            Some(c) => c.list(namespace, from, at.unwrap_or(revision)),
        }
    }

    /// Returns a receiver that is notified after each change of the kind.
    pub(super) fn subscribe(&self, collection: &CollectionName) -> watch::Receiver<u64> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.collection(collection).subscribe()
    }

    /// Returns the changes of a kind after `revision`, and the store's current revision.
    pub(super) fn changes(
        &self,
        collection: &CollectionName,
        revision: u64,
    ) -> Result<(u64, Vec<Arc<Change>>), Failure> {
        let state = self.read();
        let changes = match state.collections.get(collection) {
            None => Vec::new(),
            Some(c) => c.changes_after(revision)?,
        };
        Ok((state.revision, changes))
    }

    /// Runs `work` with exclusive access to the store. Writes before a failure are not undone: check first, then write.
    ///
    /// The answer should only be sent when the returned [`Durable`] is reached.
    pub(super) fn transact<T, E>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<(T, Durable), E> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let mut transaction = Transaction::new(&mut state);
        let result = work(&mut transaction);
        let (writes, touched) = transaction.finish();
        let revision = state.revision;
        for name in touched {
            state.collection(&name).wake(revision);
        }
        // The changes are queued under the lock, so that they are written in their order.
        let durable = match &self.disk {
            Some(disk) if !writes.is_empty() => disk.queue(writes, revision),
            _ => Durable::now(),
        };
        drop(state);
        Ok((result?, durable))
    }
}
