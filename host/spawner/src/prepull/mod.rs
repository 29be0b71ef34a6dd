//! Lets nodes pull images before somebody asks for them. The core decides which node pulls which image. This module
//! asks the policies, manages the pods, and reports about both.

mod prepuller;
mod problems;
mod report;
mod settings;

pub use prepuller::Prepuller;
pub use report::{LivePrepulls, PrepullReport};
