//! The kinds served right now: the built-in ones and those of `CustomResourceDefinition`s.

use super::{Resource, built_in};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Finds a kind by the path it is served at.
pub(crate) struct Registry {
    /// By the name of the definition. The built-in kinds have none and come first.
    kinds: RwLock<BTreeMap<String, Vec<Arc<Resource>>>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let registry = Self { kinds: RwLock::default() };
        registry.define("", built_in::all());
        registry
    }

    /// The kind at `/apis/{group}/{version}/{plural}` (`/api/v1/{plural}` for the group `""`).
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.first(|r| r.plural == plural && r.group == group && r.version == version)
    }

    /// The first kind for which `fits` holds.
    pub(crate) fn first(&self, fits: impl Fn(&Resource) -> bool) -> Option<Arc<Resource>> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.values().flatten().find(|kind| fits(kind)).cloned()
    }

    /// All kinds, built-in ones first.
    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.values().flatten().cloned().collect()
    }

    /// Serves the kinds of a definition from now on, in place of those it had before.
    pub(crate) fn define(&self, definition: &str, kinds: Vec<Resource>) {
        let mut all = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(definition.to_owned(), kinds.into_iter().map(Arc::new).collect());
    }

    /// Stops serving the kinds of a definition.
    pub(crate) fn forget(&self, definition: &str) {
        self.kinds.write().unwrap_or_else(PoisonError::into_inner).remove(definition);
    }
}
