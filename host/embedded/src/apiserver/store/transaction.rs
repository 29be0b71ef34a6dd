//! Transactions of several reads and writes.

use super::{CollectionName, Key, Object, State};
use crate::apiserver::metadata::{self, Document};
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A write to disk: the object's new state, or nothing if it is removed.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) collection: CollectionName,
    pub(super) key: Key,
    pub(super) object: Option<Arc<Object>>,
}

pub(crate) struct Transaction<'a> {
    state: &'a mut State,
    writes: Vec<Write>,
    touched: BTreeSet<CollectionName>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(state: &'a mut State) -> Self {
        Self { state, writes: Vec::new(), touched: BTreeSet::new() }
    }

    pub(super) fn finish(self) -> (Vec<Write>, BTreeSet<CollectionName>) {
        (self.writes, self.touched)
    }

    /// Returns the store with the changes of this transaction so far.
    pub(crate) fn state(&self) -> &State {
        self.state
    }

    pub(crate) fn get(&self, collection: &str, key: &Key) -> Option<Arc<Object>> {
        self.state.get(collection, key).cloned()
    }

    /// Returns the objects that name the object with this uid as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(CollectionName, Key)> {
        self.state.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Writes the object under the next revision.
    pub(crate) fn put(&mut self, collection: &CollectionName, document: Document) -> Arc<Object> {
        let object = self.revise(document);
        let key = object.key();
        let previous = self.state.get(collection, &key).cloned();
        index_owners(&mut self.state.dependents, collection, previous.as_deref(), Some(&object));
        self.state.collection(collection).put(object.clone());
        self.record(collection, key, Some(object.clone()));
        object
    }

    /// Removes the object and returns its last state, which has the revision of the removal. `None` if it does not
    /// exist.
    pub(crate) fn remove(&mut self, collection: &CollectionName, key: &Key) -> Option<Arc<Object>> {
        let previous = self.state.get(collection, key).cloned()?;
        let last = self.revise(previous.document().clone());
        index_owners(&mut self.state.dependents, collection, Some(&previous), None);
        self.state.collection(collection).remove(last.clone());
        self.record(collection, key.clone(), None);
        Some(last)
    }

    fn revise(&mut self, mut document: Document) -> Arc<Object> {
        self.state.revision += 1;
        let revision = self.state.revision;
        metadata::metadata_mut(&mut document)
            .insert("resourceVersion".to_owned(), json!(revision.to_string()));
        Arc::new(Object::new(document, revision))
    }

    fn record(&mut self, collection: &CollectionName, key: Key, object: Option<Arc<Object>>) {
        self.touched.insert(collection.clone());
        self.writes.push(Write { collection: collection.clone(), key, object });
    }
}

/// Updates the index of owners for a change from `before` to `after`.
pub(super) fn index_owners(
    dependents: &mut HashMap<String, BTreeSet<(CollectionName, Key)>>,
    collection: &CollectionName,
    before: Option<&Object>,
    after: Option<&Object>,
) {
    if let Some(before) = before {
        for uid in metadata::owner_uids(before.document()) {
            if let Some(entries) = dependents.get_mut(uid) {
                entries.remove(&(collection.clone(), before.key()));
                if entries.is_empty() {
                    dependents.remove(uid);
                }
            }
        }
    }
    if let Some(after) = after {
        for uid in metadata::owner_uids(after.document()) {
            dependents.entry(uid.to_owned()).or_default().insert((collection.clone(), after.key()));
        }
    }
}
