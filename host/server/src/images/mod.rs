//! Asks registries which images there are.

mod refresh;

pub use refresh::keep_fresh;
