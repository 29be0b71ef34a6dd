//! One stored object.

use crate::apiserver::metadata::{self, Document};
use bytes::Bytes;
use std::sync::OnceLock;

/// The key of an object within its kind. The order is that of lists: by namespace, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// The namespace; `""` for cluster-wide kinds.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    /// Creates the key of `name` in `namespace` (`""` for cluster-wide kinds).
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// An object at one revision. It is immutable, shared by lists, histories and watches, and serialized at most once.
#[derive(Debug)]
pub(crate) struct Object {
    revision: u64,
    document: Document,
    json: OnceLock<Bytes>,
}

impl Object {
    /// Creates an object at `revision`, which is its `metadata.resourceVersion`.
    pub(crate) fn new(document: Document, revision: u64) -> Self {
        Self { revision, document, json: OnceLock::new() }
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    /// Returns the revision at which the object was written.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn key(&self) -> Key {
        Key::new(metadata::namespace(&self.document), metadata::name(&self.document))
    }

    pub(crate) fn json(&self) -> Bytes {
        self.json.get_or_init(|| Bytes::from(serde_json::to_vec(&self.document).unwrap_or_default())).clone()
    }
}
