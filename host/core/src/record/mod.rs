//! What is written down of everything that was spawned: the custom resource `Spawn`.
//!
//! A record lives in the service's own namespace, where only the service may write. What it says is trusted; what the
//! labels of any other object say is not. It is created before a request is answered, says that a stop was accepted
//! before that is answered, and is deleted when nothing of the spawn is left. It never holds a credential or the value
//! of an environment variable.

mod definition;
mod description;
mod key;
mod place;
mod recover;
mod spec;
mod status;

/// The label that says which installation of the service wrote a record, as it does on every other object.
pub use crate::labels::INSTANCE_LABEL;
pub use definition::{API_VERSION, FINALIZER, GROUP, KIND, PLURAL, VERSION, definition};
pub use description::{LabDescription, PolicyRef, Quotas, Share};
pub use key::{SpawnKey, SpawnKind};
pub use place::Place;
pub use recover::{Recovered, recover};
pub use spec::{Desired, OperationSpec, SpawnSpec, TimeLimitsSpec};
pub use status::{Condition, SpawnStatus};
