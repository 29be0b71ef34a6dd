//! The currently served kinds: the built-in ones and those of `CustomResourceDefinition`s.

use super::{Resource, built_in};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The registry of served kinds, which finds a kind by its path.
pub(crate) struct Registry {
    /// The kinds by the name of their definition. The built-in kinds have the name `""` and come first.
    kinds: RwLock<BTreeMap<String, Vec<Arc<Resource>>>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let registry = Self { kinds: RwLock::default() };
        registry.define("", built_in::all());
        registry
    }

    /// Returns the kind at `/apis/{group}/{version}/{plural}` (`/api/v1/{plural}` for the group `""`).
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.first(|r| r.plural == plural && r.group == group && r.version == version)
    }

    /// Returns the first kind for which `fits` holds.
    pub(crate) fn first(&self, fits: impl Fn(&Resource) -> bool) -> Option<Arc<Resource>> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.values().flatten().find(|kind| fits(kind)).cloned()
    }

    /// Returns all kinds, built-in ones first.
    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.values().flatten().cloned().collect()
    }

    /// Starts serving the kinds of a definition. They replace its earlier kinds.
    pub(crate) fn define(&self, definition: &str, kinds: Vec<Resource>) {
        let mut all = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(definition.to_owned(), kinds.into_iter().map(Arc::new).collect());
    }

    /// Stops serving the kinds of a definition.
    pub(crate) fn forget(&self, definition: &str) {
        self.kinds.write().unwrap_or_else(PoisonError::into_inner).remove(definition);
    }
}
