//! The record of a spawn: the custom resource `Spawn`.
//!
//! Records are in the service's own namespace, where only the service may write. The service trusts its records, and
//! not the labels of any other object. A record is created before the spawn request is answered, is updated before a
//! stop request is answered, and is deleted when no object of the spawn is left. It never contains a credential or the
//! value of an environment variable.

pub mod definitions;
pub mod operation_record;
pub mod retained;
pub mod volumes;

mod definition;
mod description;
mod place;
mod recover;
mod spec;
mod status;

/// The label with the installation of the service that wrote a record, the same as on every other object.
pub use crate::names::labels::INSTANCE_LABEL;
pub use definition::{FINALIZER, KIND, PLURAL, complete_records, definition};

pub use crate::custom_resource::api_group::{API_VERSION, GROUP, VERSION};
pub use description::{
    GroupDescription, ImpossibleResize, KernelDescription, LabDescription, PolicyRef, PoolDescription,
    Quotas, ResourceAmount,
};
pub use place::{ImpossiblePlace, Place, PlaceClaim, PlaceKind, PlaceWorkload};
pub use recover::{Recovered, interrupted, recover};
pub use spec::{Desired, OperationSpec, OwnNamespace, SpawnSpec, TimeLimitsSpec};
pub use status::SpawnStatus;
