//! Pulls images to nodes before a user requests them.
//!
//! Policies and the configuration name images that are *wanted*. A node *needs* a wanted image if labs with it can be
//! placed there, and the image is *missing* if the node does not have it. A *pull* is the transfer of one image to one
//! node, by a pod of its own. The plan lists the pulls that begin and the pods that are removed.

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
