//! One request about objects, with everything that its answer depends on.

use super::Server;
use super::accept::Accept;
use super::access::Identity;
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
    pub(super) caller: Caller,
    pub(super) content_type: String,
    pub(super) body: Bytes,
}

/// Where a request comes from.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) identity: Identity,
    /// The `User-Agent`, which names the field manager of clients that do not say one.
    pub(super) agent: String,
    /// Ends the long-running answers of a listener that is shut down.
    pub(super) shutdown: CancellationToken,
}

impl Call {
    /// Where the object `name` is stored.
    pub(super) fn key(&self, name: &str) -> Key {
        self.resource.key(self.namespace.as_deref(), name)
    }

    /// Who owns the fields that this request sets.
    pub(super) fn manager(&self) -> String {
        let agent = self.caller.agent.split('/').next().filter(|agent| !agent.is_empty());
        self.query.text("fieldManager").or(agent).unwrap_or("unknown").to_owned()
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
