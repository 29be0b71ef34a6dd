//! Lets nodes pull images before somebody asks for them. What is pulled where is decided in the core; here are the
//! questions to policies, the pods, and the report about both.

mod prepuller;
mod problems;
mod report;
mod settings;

pub use prepuller::Prepuller;
pub use report::{LivePrepulls, PrepullReport};
