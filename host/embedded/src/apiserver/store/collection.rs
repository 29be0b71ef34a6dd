//! The objects of one kind and the window of their latest changes.

use super::{Key, Object};
use crate::apiserver::failure::Failure;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::watch;

/// The kind of a change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// A change of an object. A deletion carries the object's last state under the revision of the deletion.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    pub(crate) object: Arc<Object>,
    /// The object before the change, for watchers whose selector it matched only then.
    pub(crate) previous: Option<Arc<Object>>,
}

impl Change {
    /// Returns the revision of the change.
    pub(crate) fn revision(&self) -> u64 {
        self.object.revision()
    }
}

/// A revision, and the objects at that revision.
pub(crate) type Listing = (u64, Vec<Arc<Object>>);

/// The objects of one kind.
pub(super) struct Collection {
    objects: BTreeMap<Key, Arc<Object>>,
    history: VecDeque<Arc<Change>>,
    /// The revision up to which changes have been dropped.
    compacted: u64,
    window: usize,
    tip: watch::Sender<u64>,
}

impl Collection {
    /// Creates an empty collection without changes up to the revision `compacted`.
    pub(super) fn new(compacted: u64, window: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            compacted,
            window,
            tip: watch::Sender::new(compacted),
        }
    }

    /// Adds an object from disk, without a change or an event.
    pub(super) fn load(&mut self, object: Arc<Object>) {
        self.objects.insert(object.key(), object);
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.tip.subscribe()
    }

    pub(super) fn wake(&self, revision: u64) {
        self.tip.send_replace(revision);
    }

    /// Returns the objects after `from`, of one namespace or of all.
    pub(super) fn range<'a>(
        &'a self,
        namespace: Option<&'a str>,
        from: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        let start = match (from, namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => Bound::Included(Key::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        self.objects
            .range((start, Bound::Unbounded))
            .take_while(move |(key, _)| namespace.is_none_or(|n| key.namespace == n))
            .map(|(_, object)| object)
    }

    /// Returns the objects as they were at revision `at`, by undoing later changes.
    pub(super) fn list(
        &self,
        namespace: Option<&str>,
        from: Option<&Key>,
        at: u64,
    ) -> Result<Listing, Failure> {
        let later = self.changes_after(at)?;
        if later.is_empty() {
            return Ok((at, self.range(namespace, from).cloned().collect()));
        }
        let mut then: BTreeMap<Key, Arc<Object>> =
            self.range(namespace, from).map(|object| (object.key(), object.clone())).collect();
        for change in later.iter().rev() {
            let key = change.object.key();
            if namespace.is_some_and(|n| key.namespace != n) || from.is_some_and(|from| key <= *from) {
                continue;
            }
            match &change.previous {
                Some(previous) => then.insert(key, previous.clone()),
                None => then.remove(&key),
            };
        }
        Ok((at, then.into_values().collect()))
    }

    /// Returns the changes after `revision`, oldest first.
    pub(super) fn changes_after(&self, revision: u64) -> Result<Vec<Arc<Change>>, Failure> {
        if revision < self.compacted {
            return Err(Failure::expired(revision, self.compacted));
        }
        let start = self.history.partition_point(|change| change.revision() <= revision);
        Ok(self.history.range(start..).cloned().collect())
    }

    /// Writes `object` and remembers the change.
    pub(super) fn put(&mut self, object: Arc<Object>) {
        let previous = self.objects.insert(object.key(), object.clone());
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.remember(Change { kind, object, previous });
    }

    /// Removes an object, whose final state is `last`, and remembers the change.
    pub(super) fn remove(&mut self, last: Arc<Object>) {
        let previous = self.objects.remove(&last.key());
        self.remember(Change { kind: ChangeKind::Deleted, object: last, previous });
    }

    fn remember(&mut self, change: Change) {
        self.history.push_back(Arc::new(change));
        while self.history.len() > self.window {
            if let Some(forgotten) = self.history.pop_front() {
                self.compacted = forgotten.revision();
            }
        }
    }
}
