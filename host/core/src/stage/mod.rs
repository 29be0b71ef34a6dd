//! From what Kubernetes says about a pod to the stage its lab is in.
//!
//! The order of the questions is the design: deletion, phase, faults that nothing will mend, scheduling, pulling,
//! init containers, main containers, ready. Faults come before scheduling and pulling because a cluster goes on
//! saying "unscheduled" or "pulling" while it already knows that this will not end.

mod analysis;
mod analyze;
mod container;
mod event;
mod event_fault;
mod kind;
mod message;
mod notes;
mod pod;
mod policy;
mod pull;
mod state_fault;

pub use analysis::{Analysis, Finding, Severity};
pub use analyze::analyze;
pub use kind::Stage;
pub use pod::ObservedPod;
pub use policy::StagePolicy;
