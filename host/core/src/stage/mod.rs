//! From what Kubernetes says about a pod to the stage its lab is in.

mod analysis;
mod kind;

pub use analysis::{Analysis, Finding, Severity};
pub use kind::Stage;
