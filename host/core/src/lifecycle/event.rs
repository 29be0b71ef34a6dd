//! What happened to a lab.

use jiff::SignedDuration;

use super::{Ending, Failure, Observation, Operation};

/// Something that happened. Stale answers (of an operation that is over) are ignored by [`super::Lab::step`].
#[derive(Debug, Clone)]
pub enum Event {
    /// A spawn was admitted.
    SpawnAdmitted(Operation),
    /// A stop was admitted.
    StopAdmitted(Operation),
    /// A lab that ended by itself is being removed.
    ReapBegun(Operation, Ending),
    /// The policies answered.
    Decided(Result<Plan, Failure>),
    /// The objects were created, or could not be.
    Applied(Result<(), Failure>),
    /// The cluster shows something new.
    Observed(Observation),
    /// The API server refused a deletion.
    DeleteRefused(Failure),
    /// Time passed; the operation's deadline may have come.
    Tick,
    /// Reconciliation asks to try again what could not be cleaned.
    Reconcile,
}

/// What a spawn's policies decided that the lifecycle needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Plan {
    /// Time limit of this spawn, when it differs from the service's.
    pub spawn_limit: Option<SignedDuration>,
    /// Time limit of this lab's deletion, when it differs from the service's.
    pub delete_limit: Option<SignedDuration>,
}
