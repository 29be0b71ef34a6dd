//! The answer about an object that is kept when labs end.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::record::retained;

/// An object that stays on purpose when labs end.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RetainedObject {
    /// What it is.
    kind: RetainedKind,
    /// The Secret with which its cluster is reached; null for the service's own cluster.
    cluster: Option<String>,
    /// Its namespace, or that of a target; null for a namespace.
    namespace: Option<String>,
    /// Its name.
    name: String,
    /// Whose it is: `USER` or `USER/SERVER` for each server that has used it, sorted. Empty if it is nobody's.
    owners: Vec<String>,
    /// True while a lab uses it.
    in_use: bool,
    /// Why it stays, for programs: `namespaces_stay`, `retained`, `until_server_is_deleted`, `released` or `ready`.
    #[schema(value_type = String, example = "retained")]
    reason: &'static str,
    /// Why it stays, and what would delete it, for people.
    message: String,
}

/// The kind of an object that stays.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) enum RetainedKind {
    Namespace,
    PersistentVolumeClaim,
    DeploymentTarget,
}

impl From<retained::RetainedKind> for RetainedKind {
    fn from(kind: retained::RetainedKind) -> Self {
        match kind {
            retained::RetainedKind::Namespace => Self::Namespace,
            retained::RetainedKind::PersistentVolumeClaim => Self::PersistentVolumeClaim,
            retained::RetainedKind::DeploymentTarget => Self::DeploymentTarget,
        }
    }
}

impl From<retained::RetainedObject> for RetainedObject {
    fn from(object: retained::RetainedObject) -> Self {
        let retained::RetainedObject { kind, cluster, namespace, name, owners, in_use, reason } = object;
        let message = reason.to_string();
        Self { kind: kind.into(), cluster, namespace, name, owners, in_use, reason: reason.as_str(), message }
    }
}
