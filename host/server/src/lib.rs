//! The service: everything that touches the world around the core.

pub mod cli;
pub mod telemetry;
pub mod wasm;
