//! What belongs to no lab.

use serde::Serialize;
use utoipa::ToSchema;

use crate::spawner;

/// An object with this service's labels that belongs to no lab.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Orphan {
    /// What it is. A `ConfigMap` is the environment of a lab in a namespace that stays; the lab's other objects there go
    /// with it.
    kind: OrphanKind,
    /// Where it is; null for a namespace.
    namespace: Option<String>,
    /// Its name.
    name: String,
    /// The uid of the record that it says to belong to.
    spawn: Option<String>,
}

/// The kind of an orphan.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(in crate::http) enum OrphanKind {
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
        let spawner::Orphan { kind, namespace, name, spawn, .. } = orphan;
        Self { kind: kind.into(), namespace, name, spawn }
    }
}
