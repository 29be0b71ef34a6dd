//! The life of a lab as a pure state machine.
//!
//! [`admit_spawn`] and [`admit_stop`] say whether a request may begin an operation; [`Lab::step`] takes what happened
//! and answers what to do about it. Who does it, and how, is the driver's business: the core sees no cluster and no
//! clock.
//!
//! ```text
//!            spawn                      ready
//!  Absent ----------> Starting ----------------------> Running
//!    ^  ^               |   | failure                     |  | crash
//!    |  |          stop |   +---------> Failed <----------+--+
//!    |  |               v                 | cleans itself   | stop, end of the pod
//!    |  +---------- Terminating <---------|-----------------+
//!    +---- (a new spawn replaces it) -----+
//! ```

mod admit;
mod deletion;
mod effect;
mod event;
mod failure;
mod lab;
mod observation;
mod recover;
mod running;
mod starting;
mod step;
mod terminating;

pub use admit::{Admission, Refusal, admit_release, admit_spawn, admit_stop};
pub use deletion::DeleteStep;
pub use effect::{Effect, Ending, Outcome};
pub use event::{Event, Plan};
pub use failure::{Blame, Failure};
pub use lab::{Lab, LabStatus, Operation, OperationKind, Phase, SpawnStep, TimeLimits};
pub use observation::{Observation, PodPresence, Presence};
