//! What belongs to no lab.

use serde::Serialize;
use utoipa::ToSchema;

use crate::spawner;

/// An object with this service's labels that belongs to no lab.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Orphan {
    /// `Namespace` or `Pod`.
    kind: &'static str,
    /// Where a pod is; null for a namespace.
    namespace: Option<String>,
    /// Its name.
    name: String,
    /// The uid of the record that it says to belong to.
    spawn: Option<String>,
}

impl From<spawner::Orphan> for Orphan {
    fn from(orphan: spawner::Orphan) -> Self {
        let spawner::Orphan { kind, namespace, name, spawn, .. } = orphan;
        Self { kind, namespace, name, spawn }
    }
}
