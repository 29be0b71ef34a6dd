//! Asks registries for their images, and follows the images that nodes have.

mod nodes;
mod refresh;
mod stored;

pub use nodes::follow_nodes;
pub use refresh::keep_fresh;
