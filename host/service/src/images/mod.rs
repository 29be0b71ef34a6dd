//! Asks registries which images there are, and follows which of them the nodes have.

mod nodes;
mod refresh;
mod stored;

pub use nodes::follow_nodes;
pub use refresh::keep_fresh;
