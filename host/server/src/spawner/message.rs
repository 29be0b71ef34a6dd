//! What a driver is told from outside. What the cluster shows it reads from the store.

use tokio::sync::oneshot;
use tokio::time::Instant;
use wasmspawner_core::lab::JobId;
use wasmspawner_core::volumes::Release;

use super::errors::SpawnError;
use super::evaluate::Approved;
use crate::records::StoredSpawn;

/// Who waits for an answer, and until when. What is not done by then is refused: the answer to several who ask at once must
/// not come later for each of them.
pub(super) struct Waiting {
    pub(super) until: Instant,
    pub(super) reply: oneshot::Sender<Result<(), SpawnError>>,
}

/// What a driver is told from outside. It travels in a box: each lab has a channel, which has room for 32 of them.
pub(super) enum Message {
    /// Start a lab, if it may be.
    Spawn(Approved, Waiting),
    /// Stop it, if there is one.
    Stop(StopRequest, Waiting),
    /// Delete its volumes, if it is gone.
    Release(oneshot::Sender<Result<Release, SpawnError>>),
    /// The record is as given: somebody may want the lab stopped.
    Record(StoredSpawn),
    /// The cluster's API has gone away, or is back.
    ClusterAway(bool),
    /// Time for what is done now and then.
    Housekeeping,
}

/// That a lab is to be stopped.
pub(super) struct StopRequest {
    /// The name of who asks.
    pub(super) requested_by: String,
    /// Why, for the events and the history, where nobody has asked.
    pub(super) because: Option<String>,
    /// Only the lab of this spawn is meant, while it starts or runs; not the next one of its name.
    pub(super) only: Option<JobId>,
}

impl StopRequest {
    /// Somebody asks for it.
    pub(super) fn by(requested_by: impl Into<String>) -> Self {
        Self { requested_by: requested_by.into(), because: None, only: None }
    }
}
