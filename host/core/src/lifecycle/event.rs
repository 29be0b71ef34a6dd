//! What happened to a lab.

use jiff::SignedDuration;

use super::{Ending, Failure, Observed, Operation};

/// Something that happened. What does not fit the state (a late answer, a repeated observation) changes nothing.
#[derive(Debug, Clone)]
pub enum Event {
    /// A spawn was accepted, and its record is written.
    SpawnAccepted(Operation),
    /// A stop was accepted, and its record is written.
    StopAccepted(Operation),
    /// A lab that ended by itself is being removed.
    CleanupBegun(Operation, Ending),
    /// The policies answered.
    Decided(Result<LabTerms, Failure>),
    /// The objects were created, or could not be.
    Created(Result<(), Failure>),
    /// The cluster shows something.
    Observed(Box<Observed>),
    /// Pod and namespace were read directly; this is what there is.
    Read(Box<Observed>),
    /// The API server accepted the deletion of everything but the pod.
    RestDeletionAccepted,
    /// A deletion or a reading was refused, or not answered.
    RequestFailed(Failure),
    /// Time passed.
    Tick,
}

/// What a spawn's policies decided that the lifecycle needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LabTerms {
    /// Time limit of this spawn, when it differs from the service's.
    pub spawn_limit: Option<SignedDuration>,
    /// Time limit of this lab's deletion, when it differs from the service's.
    pub delete_limit: Option<SignedDuration>,
}
