//! Computes the names that KubeSpawner would give, for operators who plan a move and want to compare them.

mod collision;
mod report;

pub use collision::{Collision, Collisions};
pub use report::{Ambiguous, Defaults, KubeSpawner, NameQuery, Report};
