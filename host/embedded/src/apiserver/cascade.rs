//! Deletion of an object with everything that depends on it: dependents, the content of a namespace, and the objects of
//! a custom kind.
//!
//! In Kubernetes, controllers do this eventually. Here it happens inside the transaction that deletes, until finalizers
//! and grace periods stop it. Each later removal continues it.

use super::deletion::DeleteOptions;
use super::failure::Failure;
use super::metadata::{self, Document};
use super::resource::{Resource, collection_of};
use super::store::{CollectionName, Key, Object, Transaction};
use super::{Server, admission};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// The result of the deletion of an object.
#[derive(Debug)]
pub(super) enum Deleted {
    /// The object is gone; this was its last state.
    Removed(Arc<Object>),
    /// The object is removed when it has no finalizers left and its grace period is over.
    Marked(Arc<Object>),
}

impl Deleted {
    pub(super) fn object(&self) -> &Arc<Object> {
        match self {
            Self::Removed(object) | Self::Marked(object) => object,
        }
    }
}

/// Deletions within one transaction.
pub(super) struct Cascade<'a, 't> {
    server: &'a Server,
    transaction: &'a mut Transaction<'t>,
    removed: VecDeque<(Arc<Resource>, Arc<Object>)>,
    /// Namespaces that are being deleted and in which something has changed.
    namespaces: BTreeSet<String>,
}

impl<'a, 't> Cascade<'a, 't> {
    pub(super) fn new(server: &'a Server, transaction: &'a mut Transaction<'t>) -> Self {
        Self { server, transaction, removed: VecDeque::new(), namespaces: BTreeSet::new() }
    }

    /// Deletes an object with everything that depends on it. Objects with finalizers or a grace period are only marked.
    pub(super) fn delete(
        mut self,
        resource: &Arc<Resource>,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Deleted, Failure> {
        let deleted = self.begin(resource, key, options)?;
        self.follow_up();
        // A namespace without content is already gone.
        match deleted {
            Deleted::Marked(marked) => Ok(match self.transaction.get(&resource.collection, key) {
                Some(now) => Deleted::Marked(now),
                None => Deleted::Removed(marked),
            }),
            removed @ Deleted::Removed(_) => Ok(removed),
        }
    }

    /// Removes an object that no longer has finalizers or a grace period, with everything that depends on it. Returns
    /// its last state.
    pub(super) fn finish(mut self, resource: &Arc<Resource>, key: &Key) -> Option<Arc<Object>> {
        let last = if resource.is_core("namespaces") {
            self.namespaces.insert(key.name.clone());
            self.transaction.get(&resource.collection, key)
        } else {
            self.remove(resource, key)
        };
        self.follow_up();
        last
    }

    fn begin(
        &mut self,
        resource: &Arc<Resource>,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Deleted, Failure> {
        let object =
            self.transaction.get(&resource.collection, key).ok_or_else(|| resource.not_found(&key.name))?;
        options.check(resource, object.document())?;
        let grace = options.grace_for(resource, object.document());
        let mut document = object.document().clone();
        if resource.is_core("namespaces") {
            self.namespaces.insert(key.name.clone());
            metadata::member(&mut document, "status").insert("phase".to_owned(), json!("Terminating"));
        }
        let waits =
            grace > 0 || metadata::finalizers(&document).next().is_some() || resource.is_core("namespaces");
        if !waits {
            return self
                .remove(resource, key)
                .map(Deleted::Removed)
                .ok_or_else(|| resource.not_found(&key.name));
        }
        let already = metadata::is_deleting(&document);
        let shorter = options.grace.is_some() && grace < metadata::grace(&document);
        if already && !shorter {
            return Ok(Deleted::Marked(object));
        }
        metadata::mark_deleting(&mut document, grace);
        Ok(Deleted::Marked(self.transaction.put(&resource.collection, document)))
    }

    /// Deletes an object that may already be gone, which is not an error. Objects of a kind that is no longer served,
    /// which an older state may contain, are removed at once.
    fn begin_quietly(&mut self, collection: &CollectionName, key: &Key) {
        match self.server.registry.first(|kind| kind.collection == *collection) {
            Some(resource) => drop(self.begin(&resource, key, &DeleteOptions::default())),
            None => drop(self.transaction.remove(collection, key)),
        }
    }

    fn remove(&mut self, resource: &Arc<Resource>, key: &Key) -> Option<Arc<Object>> {
        let last = self.transaction.remove(&resource.collection, key)?;
        self.removed.push_back((resource.clone(), last.clone()));
        Some(last)
    }

    /// Processes removals and namespaces until nothing more can be done now.
    fn follow_up(&mut self) {
        loop {
            if let Some((resource, object)) = self.removed.pop_front() {
                self.follow(&resource, &object);
            } else if let Some(namespace) = self.namespaces.pop_first() {
                self.drain(&namespace);
            } else {
                return;
            }
        }
    }

    /// Handles the consequences of the removal of an object.
    fn follow(&mut self, resource: &Resource, object: &Object) {
        let document = object.document();
        for (collection, key) in self.transaction.dependents(metadata::uid(document)) {
            let Some(dependent) = self.transaction.get(&collection, &key) else { continue };
            if !self.has_living_owner(dependent.document()) {
                self.begin_quietly(&collection, &key);
            }
        }
        if !metadata::namespace(document).is_empty() {
            admission::refresh_quotas(self.transaction, metadata::namespace(document));
            self.namespaces.insert(metadata::namespace(document).to_owned());
        }
        if resource.plural == "customresourcedefinitions" {
            self.forget_kind(document);
        }
    }

    fn forget_kind(&mut self, definition: &Document) {
        if let Some(collection) = collection_of(definition) {
            let keys: Vec<Key> =
                self.transaction.state().all(&collection).map(|object| object.key()).collect();
            for key in keys {
                self.begin_quietly(&collection, &key);
            }
        }
        self.server.registry.forget(metadata::name(definition));
    }

    /// Deletes the content of a namespace that is being deleted, and then the namespace itself.
    fn drain(&mut self, name: &str) {
        let namespaces: CollectionName = "namespaces".into();
        let key = Key::new("", name);
        let Some(namespace) = self.transaction.get(&namespaces, &key) else { return };
        if !metadata::is_deleting(namespace.document()) {
            return;
        }
        for (collection, key) in self.content(name) {
            self.begin_quietly(&collection, &key);
        }
        if self.content(name).is_empty()
            && metadata::finalizers(namespace.document()).next().is_none()
            && let Some(resource) = self.server.registry.find("", "v1", "namespaces")
        {
            self.remove(&resource, &key);
        }
    }

    fn content(&self, namespace: &str) -> Vec<(CollectionName, Key)> {
        let state = self.transaction.state();
        let keys = |collection: &CollectionName| {
            let objects = state.in_namespace(collection, namespace);
            objects.map(|object| (collection.clone(), object.key())).collect::<Vec<_>>()
        };
        state.collections().flat_map(keys).collect()
    }

    /// True if any owner of the object exists. Owners of kinds that are not served here count as existing.
    pub(super) fn has_living_owner(&self, dependent: &Document) -> bool {
        let namespace = metadata::namespace(dependent);
        owner_references(dependent).any(|reference| {
            let text = |field| reference.get(field).and_then(Value::as_str).unwrap_or_default();
            let is_owners = |r: &Resource| r.kind == text("kind") && r.api_version() == text("apiVersion");
            let Some(resource) = self.server.registry.first(is_owners) else { return true };
            let key = resource.key(Some(namespace), text("name"));
            let owner = self.transaction.get(&resource.collection, &key);
            owner.is_some_and(|owner| metadata::uid(owner.document()) == text("uid"))
        })
    }
}

fn owner_references(object: &Document) -> impl Iterator<Item = &Value> {
    metadata::field(object, "ownerReferences").and_then(Value::as_array).into_iter().flatten()
}
