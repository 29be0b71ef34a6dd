//! Kinds of objects in a namespace.

use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};

/// A kind of objects in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectKind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version of the API group.
    pub version: &'static str,
    /// The kind, such as `ConfigMap`.
    pub kind: &'static str,
    /// The kind's name in URLs and permissions, such as `configmaps`.
    pub plural: &'static str,
}

impl ObjectKind {
    pub(super) const fn of<K: Resource>() -> Self {
        Self { group: K::GROUP, version: K::VERSION, kind: K::KIND, plural: K::URL_PATH_SEGMENT }
    }

    /// True if an object of this kind limits everything in its namespace, and so the labs of all users who share it.
    pub fn limits_namespace(&self) -> bool {
        matches!(self.kind, ResourceQuota::KIND | LimitRange::KIND)
    }
}
