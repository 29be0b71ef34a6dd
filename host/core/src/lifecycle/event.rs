//! Events in the life of a lab.

use jiff::SignedDuration;

use super::{CreationNote, Ending, Failure, Observed, Operation};

/// An event. An event that does not fit the state (a late answer, a repeated observation) changes nothing.
#[derive(Debug, Clone)]
pub enum Event {
    /// A spawn was accepted, and its record is written.
    SpawnAccepted(Operation),
    /// A stop was accepted, and its record is written.
    StopAccepted(Operation),
    /// A cleanup operation began for a lab that ended by itself.
    CleanupBegun(Operation, Ending),
    /// The policies answered.
    Decided(Result<LabTimeLimits, Failure>),
    /// The policies answered, and the lab has to wait for an environment. The text is the reason of the wait, in words.
    EnvironmentNeeded(LabTimeLimits, String),
    /// The policies answered, and the lab cannot have the namespace that was kept: it differs from the one that the lab
    /// needs. The policies are asked again when it is gone.
    NamespaceDiffers,
    /// The lab has an environment, or will not get one.
    Bound(Result<(), Failure>),
    /// Something happened while the objects are being created.
    CreationNoted(CreationNote),
    /// The objects were created, or could not be.
    Created(Result<(), Failure>),
    /// The observed state of the cluster changed.
    Observed(Box<Observed>),
    /// Pod and namespace were read directly from the API server.
    Read(Box<Observed>),
    /// The API server accepted the deletion of everything but the pod.
    RestDeletionAccepted,
    /// A deletion or read request was refused or not answered.
    RequestFailed(Failure),
    /// Time passed.
    Tick,
}

/// Results of a spawn's policies that the lifecycle needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LabTimeLimits {
    /// Time limit of this spawn, if a policy set one.
    pub spawn_limit: Option<SignedDuration>,
    /// Time limit of this lab's deletion, if a policy set one.
    pub delete_limit: Option<SignedDuration>,
}
