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
pub mod k8s;
mod one_machine;
pub mod prepull;
mod random_token;
pub mod records;
pub mod run;
mod short_watch;
pub mod site_blueprints;
pub mod spawner;
pub mod store;
pub mod workloads;
