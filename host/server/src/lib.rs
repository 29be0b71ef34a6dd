//! The service: all IO around the decisions of `wasmspawner-core`.

pub mod blueprint_providers;
pub mod cli;
pub mod clusters;
mod config_part;
pub mod environments;
pub mod history;
pub mod http;
pub mod hub;
pub mod images;
pub mod inventory;
pub mod k8s;
mod one_machine;
mod outgoing;
mod per_user;
pub mod prepull;
mod random_token;
pub mod records;
pub mod registry;
pub mod run;
mod secret_file;
mod short_watch;
pub mod spawner;
pub mod store;
pub mod telemetry;
pub mod wasm;
mod whole_file;
mod yaml_problem;
