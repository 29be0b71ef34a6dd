//! A lab that a restart found.

use wasmspawner_core::lifecycle::Lab;
use wasmspawner_core::progress::{OperationRecord, ProgressLog};

use super::place::Place;
use super::snapshot::About;
use super::world::World;

/// A lab that a restart found.
pub(super) struct Recovered {
    pub(super) lab: Lab,
    pub(super) world: World,
    pub(super) place: Place,
    pub(super) about: About,
    pub(super) log: ProgressLog,
    pub(super) record: Option<OperationRecord>,
}
