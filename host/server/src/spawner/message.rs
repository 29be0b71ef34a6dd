//! What a driver is told from outside.

use k8s_openapi::api::core::v1::{Event, Pod};
use tokio::sync::oneshot;
use wasmspawner_core::lifecycle::{Presence, Refusal};
use wasmspawner_core::volumes::Release;

use super::errors::SpawnError;
use super::evaluate::Approved;

/// What a driver is told from outside.
pub(super) enum Message {
    /// Start a lab, if it may be.
    Spawn(Box<Approved>, oneshot::Sender<Result<(), Refusal>>),
    /// Stop it, if there is one.
    Stop(oneshot::Sender<Result<(), Refusal>>),
    /// Delete its volumes, if it is gone.
    Release(oneshot::Sender<Result<Release, SpawnError>>),
    /// The cluster shows something.
    Seen(Seen),
    /// Look again at what could not be cleaned.
    Reconcile,
}

/// What a watch shows of one lab.
pub(super) enum Seen {
    Pod(Box<Pod>),
    PodGone(Option<String>),
    Rest(Presence),
    Event(Box<Event>),
}
