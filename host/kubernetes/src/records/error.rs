//! Errors of records.

use wasmspawner_core::names::ObjectName;

use super::StoredSpawn;
use crate::k8s::KubernetesError;

/// An error while writing a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The request to the API server failed.
    #[error(transparent)]
    Kubernetes(#[from] KubernetesError),
    /// A record of this name exists already and belongs to another lab.
    #[error("the record {name} exists already and is of the user {user}")]
    Taken {
        /// The record's name.
        name: ObjectName,
        /// The user to whom it belongs.
        user: String,
    },
    /// Somebody else has changed the state that the record requests.
    #[error("the record was changed by somebody else")]
    Changed(Box<StoredSpawn>),
    /// The record does not exist any more.
    #[error("the record does not exist any more")]
    Gone,
    /// This process does not hold the Lease now, or a later leader has written the record.
    #[error("this process does not lead now, so it does not write the record")]
    Superseded,
}

/// The custom resource `Spawn` is not installed in the cluster.
#[derive(Debug, thiserror::Error)]
#[error(
    "the cluster does not know the custom resource spawns.wasmspawner.io, in which the service keeps its records; install it with `wasmspawner crds | kubectl apply -f -`, or apply deploy/crds.yaml"
)]
pub struct NotInstalled;

/// The definition of the custom resource `Spawn` in the cluster does not take the records of this version of the
/// service.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// It lacks a field or an enum value, or asks for another field.
    #[error(
        "the custom resource spawns.wasmspawner.io in the cluster is that of another version, and cannot hold the \
         records of this one; install this version's with `wasmspawner crds | kubectl apply -f -`, or apply \
         deploy/crds.yaml ({0})"
    )]
    OfAnotherVersion(String),
    /// The request to the API server failed.
    #[error(transparent)]
    Kubernetes(#[from] KubernetesError),
}
