//! The command line.

pub mod names;
