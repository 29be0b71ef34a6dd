//! What can go wrong with a record.

use wasmspawner_core::names::ObjectName;

use super::StoredSpawn;
use crate::k8s::KubernetesError;

/// Why a record was not written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The API server did not do it.
    #[error(transparent)]
    Kubernetes(#[from] KubernetesError),
    /// There is one of this name that is another's.
    #[error("the record {name} exists already and is of the user {user}")]
    Taken {
        /// The record.
        name: ObjectName,
        /// Whose it is.
        user: String,
    },
    /// Somebody else has changed what is wanted.
    #[error("the record was changed by somebody else")]
    Changed(Box<StoredSpawn>),
    /// It does not exist any more.
    #[error("the record does not exist any more")]
    Gone,
}

/// The cluster does not know the kind of records.
#[derive(Debug, thiserror::Error)]
#[error(
    "the cluster does not know the custom resource spawns.wasmspawner.io, in which the service keeps its records; install it with `wasmspawner crds | kubectl apply -f -`, or apply deploy/crds.yaml"
)]
pub struct NotInstalled;
