//! Helpers for tasks: permits for each key, turns at something slow, and work that goes on when its caller goes away.

pub mod detached;
pub mod per_key;
pub mod turns;
