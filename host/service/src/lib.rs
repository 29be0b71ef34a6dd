//! The service: all IO around the decisions of `wasmspawner-core`.

pub mod cli;
pub mod images;
mod one_machine;
pub mod run;
