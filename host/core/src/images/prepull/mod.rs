//! Pulls images to nodes before somebody asks for them.
//!
//! Policies and the configuration name images that are *wanted*. A node *needs* a wanted image if labs with it can be
//! placed there, and it is *missing* if the node does not have it. A *pull* is one image that one node gets, by a pod of
//! its own; the plan says which pulls begin and which pods are removed.

mod history;
mod hours;
mod needs;
mod plan;
mod pod;
mod pull;
#[cfg(test)]
mod tests;

pub use history::{FailedPull, PullHistory};
pub use hours::{DailyHours, InvalidHours};
pub use needs::{NeededImage, Needs};
pub use plan::{Ending, PrepullLimits, PullPlan, plan};
pub use pod::{PullPod, PullPodTemplate, PullState, prepull_selector};
pub use pull::Pull;
