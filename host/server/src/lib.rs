//! The service: everything that touches the world around the core.

pub mod cli;
pub mod http;
pub mod k8s;
mod one_machine;
pub mod run;
pub mod spawner;
pub mod telemetry;
pub mod wasm;
