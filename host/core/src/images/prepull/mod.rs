//! Pulls images to nodes before somebody asks for them: which node lacks which image, what is pulled now, and the pod
//! that pulls.

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
pub use pod::{PREPULL_LABEL, PullPod, PullState, PulledBy, prepull_selector};
pub use pull::Pull;
