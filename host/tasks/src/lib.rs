//! Tasks that share something: places for each key, and work that nothing interrupts.

pub mod per_key;
pub mod uninterrupted;
