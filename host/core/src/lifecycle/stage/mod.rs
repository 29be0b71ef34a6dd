//! Determines the stage of a lab from its pod and the events of Kubernetes.
//!
//! The questions are asked in a fixed order: deletion, phase, permanent faults, scheduling, pulling, init containers,
//! main containers, readiness. Faults come before scheduling and pulling because a cluster still reports
//! "unscheduled" or "pulling" when it is already certain that the pod will not start.

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
mod pull_cause;
mod reason;
mod state_fault;

pub use analysis::{Analysis, Finding, Severity};
pub use analyze::{DELETED, analyze};
pub use kind::Stage;
pub(crate) use message::without_last_words;
pub use pod::{ObservedPod, PodLife};
pub use policy::StagePolicy;
