//! The service: all IO around the decisions of `wasmspawner-core`.

pub mod cli;
pub mod images;
mod leading;
mod one_machine;
mod own_pod;
pub mod run;
