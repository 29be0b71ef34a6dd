//! What a driver is told from outside. What the cluster shows it reads from the store.

use tokio::sync::oneshot;
use tokio::time::Instant;
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

/// What a driver is told from outside.
pub(super) enum Message {
    /// Start a lab, if it may be.
    Spawn(Box<Approved>, Waiting),
    /// Stop it, if there is one. The name of who asks.
    Stop(String, Waiting),
    /// Delete its volumes, if it is gone.
    Release(oneshot::Sender<Result<Release, SpawnError>>),
    /// The record is as given: somebody may want the lab stopped.
    Record(Box<StoredSpawn>),
    /// The cluster's API has gone away, or is back.
    ClusterAway(bool),
    /// Time for what is done now and then.
    Housekeeping,
}
