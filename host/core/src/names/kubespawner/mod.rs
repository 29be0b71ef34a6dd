//! What KubeSpawner would call things: for operators who plan a move, and to compare with it value by value.

mod collision;
mod report;

pub use collision::{Collision, Collisions};
pub use report::{Ambiguous, Defaults, KubeSpawner, Question, Report};
