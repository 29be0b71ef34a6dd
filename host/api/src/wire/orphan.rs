//! The answer about an orphan.

use serde::Serialize;
use utoipa::ToSchema;

use wasmspawner_spawner as spawner;

/// An object with this service's labels that belongs to no lab.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Orphan {
    /// The Secret with which the object's cluster is reached; null for the service's own cluster. What is in other clusters
    /// is only reported.
    cluster: Option<String>,
    /// The kind of the object. A `ConfigMap` is the environment of a lab in a retained namespace; the lab's other
    /// objects there are deleted with it.
    kind: OrphanKind,
    /// The object's namespace; null when it is a namespace itself.
    namespace: Option<String>,
    /// The object's name.
    name: String,
    /// The uid of the record that its labels name.
    spawn: Option<String>,
    /// The uid of the target that its labels name, for a namespace of an environment.
    target: Option<String>,
}

/// The kind of an orphan.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) enum OrphanKind {
    ConfigMap,
    Namespace,
    Pod,
}

impl From<spawner::OrphanKind> for OrphanKind {
    fn from(kind: spawner::OrphanKind) -> Self {
        match kind {
            spawner::OrphanKind::ConfigMap => Self::ConfigMap,
            spawner::OrphanKind::Namespace => Self::Namespace,
            spawner::OrphanKind::Pod => Self::Pod,
        }
    }
}

impl From<spawner::Orphan> for Orphan {
    fn from(orphan: spawner::Orphan) -> Self {
        let spawner::Orphan { cluster, kind, namespace, name, spawn, target, .. } = orphan;
        Self { cluster: cluster.map(Into::into), kind: kind.into(), namespace, name, spawn, target }
    }
}
