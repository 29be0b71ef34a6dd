//! The pure core of wasmspawner: decisions as data.
//!
//! No code here performs IO, spawns a task or reads a clock: the time (`now`) and all observations are arguments, and
//! actions are returned as values. The crate depends on no library for IO or async tasks.

pub mod children;
pub mod config;
pub mod custom_resource;
pub mod images;
pub mod lifecycle;
pub mod manifest;
pub mod names;
pub mod policy;
pub mod record;
pub mod users;
pub mod values;
pub mod workload;
