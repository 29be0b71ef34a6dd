//! One request about objects, with everything that its answer depends on.

use super::Server;
use super::accept::Accept;
use super::failure::Failure;
use super::query::Query;
use super::resource::Resource;
use super::store::Key;
use bytes::Bytes;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A request about objects of one kind.
pub(super) struct Call {
    pub(super) server: Arc<Server>,
    pub(super) resource: Arc<Resource>,
    /// The namespace in the path; none for cluster-wide kinds and requests about all namespaces.
    pub(super) namespace: Option<String>,
    pub(super) query: Query,
    pub(super) accept: Accept,
    /// Ends the long-running answers of a listener that is shut down.
    pub(super) shutdown: CancellationToken,
    pub(super) content_type: String,
    pub(super) body: Bytes,
}

impl Call {
    /// Where the object `name` is stored.
    pub(super) fn key(&self, name: &str) -> Key {
        self.resource.key(self.namespace.as_deref(), name)
    }

    /// The namespace in the path, which creating an object of a namespaced kind needs.
    pub(super) fn required_namespace(&self) -> Result<Option<&str>, Failure> {
        match (&self.namespace, self.resource.namespaced) {
            (None, true) => {
                Err(Failure::bad_request("an empty namespace may not be set during creation or update"))
            }
            (namespace, _) => Ok(namespace.as_deref()),
        }
    }
}
