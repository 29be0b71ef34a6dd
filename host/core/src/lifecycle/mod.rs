//! The life of a lab as a pure state machine.
//!
//! [`admit_spawn`] and [`admit_stop`] decide whether a request may begin an operation. [`Lab::step`] takes an event and
//! returns the effects to carry out, such as progress to publish. [`plan`] returns the requests to make next, from the
//! lab's state and what is observed. The lab's driver, in `host/spawner`, carries out both.
//!
//! ```text
//!            spawn                      ready
//!  Absent ----------> Starting ----------------------> Running
//!    ^  ^               |   | failure                     |  | too many crashes
//!    |  |          stop |   +---------> Failed <----------+--+
//!    |  |               v                 | stop           | stop, end of the pod
//!    |  |            Stopping <-----------+----------------+
//!    |  |               | the pod is gone, deletion of the rest is accepted
//!    |  +----------- CleaningUp ---------> Starting (a spawn waits until nothing is left)
//!    +---- (a new spawn replaces a failed lab)
//! ```

pub mod forgotten;
pub mod progress;
pub mod stage;

mod admit;
mod creation_note;
mod deleting;
mod effect;
mod event;
mod failure;
mod lab;
mod observed;
mod operation;
mod plan;
mod request;
mod restarts;
mod running;
mod starting;
mod step;

pub use admit::{Admission, Refusal, admit_release, admit_spawn, admit_stop};
pub use creation_note::{ClaimSizes, CreationNote, claim_still_being_deleted};
pub use effect::{Effect, Ending, Outcome};
pub use event::{Event, LabTimeLimits};
pub use failure::{Blame, Failure};
pub use lab::{Deletion, Failed, KeptNamespace, Lab, LabStatus, Phase, Running, SpawnStep, Starting};
pub use observed::{Observed, PodPresence, Presence};
pub use operation::{Operation, OperationKind, TimeLimits};
pub use plan::{Plan, RecordState, plan};
pub use request::{InFlight, Request};
pub use restarts::{RestartPolicy, Restarts};
