//! Messages to a driver. They do not contain the state of the cluster, which the driver reads from the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;
use wasmspawner_core::children::dask::Resize;
use wasmspawner_core::custom_resource::environment::ClusterRef;
use wasmspawner_core::lifecycle::CreationNote;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::record::volumes::Release;

use crate::decide::approve::Approved;
use crate::errors::SpawnError;
use wasmspawner_kubernetes::records::StoredSpawn;
use wasmspawner_telemetry::trace::Cause;

/// The channel for an answer, and its deadline. A request that is not done by then is refused. Otherwise the answers
/// would come later and later when several requests wait.
pub(crate) struct Waiting {
    pub(crate) until: Instant,
    pub(crate) reply: oneshot::Sender<Result<(), SpawnError>>,
    /// The request of which the operation is a part, for traces.
    pub(crate) cause: Cause,
    /// The user's turn to have a spawn approved. It ends when this spawn counts, even if its caller does not wait for
    /// the answer. Then the next spawn is approved.
    pub(crate) turn: Option<OwnedSemaphorePermit>,
}

/// A message to a driver. It is sent in a box, because a tokio channel has space for 32 messages, and each lab has a
/// channel.
pub(crate) enum Message {
    /// Start a lab, if its state allows it.
    Spawn(Arc<Approved>, Waiting),
    /// Stop the lab, if there is one.
    Stop(StopRequest, Waiting),
    /// Delete the volume claims of the lab, if it is gone.
    Release(oneshot::Sender<Result<Release, SpawnError>>),
    /// The lab's record, as the watch shows it. It may ask for a stop.
    Record(Box<StoredSpawn>),
    /// Change how many workers a Dask pool, or one of its groups, may have, if it is starting or running.
    Scale(Resize, Waiting),
    /// A child of the lab has changed.
    ChildChanged,
    /// The Dask pool is to have another number of workers.
    PoolChanged,
    /// The Kubernetes API went away (true) or is back (false).
    ClusterAway(Option<ClusterRef>, bool),
    /// The environment variables of the spawn whose record has this uid were read from the cluster.
    Env { spawn: String, env: BTreeMap<String, String> },
    /// Something about the creation of the objects of this operation, for the user.
    CreationNoted(Option<JobId>, CreationNote),
    /// Remove the lab if it has failed, no matter how recently, because its user has many such labs.
    ForgetFailure,
    /// Do the periodic work.
    Housekeeping,
}

/// A request to stop a lab.
pub(crate) struct StopRequest {
    /// The caller's name, for the record.
    pub(crate) requested_by: String,
    /// The reason, for the events and the history, when the service stops the lab by itself.
    pub(crate) because: Option<String>,
    /// Stop only the lab of this spawn, while it is starting or running, and not a later one of the same name.
    pub(crate) only: Option<JobId>,
}

impl StopRequest {
    /// Makes the request for a stop that a caller asks for.
    pub(crate) fn by(requested_by: impl Into<String>) -> Self {
        Self { requested_by: requested_by.into(), because: None, only: None }
    }
}
