//! The kinds served right now: the built-in ones and those of `CustomResourceDefinition`s.

use super::{Resource, built_in};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Finds a kind by the path it is served at.
pub(crate) struct Registry {
    built_in: Vec<Arc<Resource>>,
    /// By the name of the definition.
    custom: RwLock<BTreeMap<String, Vec<Arc<Resource>>>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            built_in: built_in::all().into_iter().map(Arc::new).collect(),
            custom: RwLock::new(BTreeMap::new()),
        }
    }

    /// The kind at `/apis/{group}/{version}/{plural}` (`/api/v1/{plural}` for the group `""`).
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let fits = |r: &&Arc<Resource>| r.plural == plural && r.group == group && r.version == version;
        if let Some(found) = self.built_in.iter().find(fits) {
            return Some(found.clone());
        }
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        custom.values().flatten().find(fits).cloned()
    }

    /// The kind whose objects are in the collection, at any of its versions.
    pub(crate) fn of_collection(&self, collection: &str) -> Option<Arc<Resource>> {
        self.all().into_iter().find(|r| *r.collection == *collection)
    }

    /// All kinds, built-in ones first.
    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        self.built_in.iter().chain(custom.values().flatten()).cloned().collect()
    }

    /// Serves the kinds of a definition from now on, in place of those it had before.
    pub(crate) fn define(&self, definition: &str, kinds: Vec<Resource>) {
        let mut custom = self.custom.write().unwrap_or_else(PoisonError::into_inner);
        custom.insert(definition.to_owned(), kinds.into_iter().map(Arc::new).collect());
    }

    /// Stops serving the kinds of a definition.
    pub(crate) fn forget(&self, definition: &str) {
        self.custom.write().unwrap_or_else(PoisonError::into_inner).remove(definition);
    }
}
