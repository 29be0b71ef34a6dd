//! The pure core of wasmspawner: decisions as data.
//!
//! Nothing here performs IO, spawns a task or reads a clock: the time is an argument (`now`), observations come in as
//! values, and what should happen goes out as values. The crate's dependency list is the guard of that rule.

pub mod access;
pub mod config;
pub mod field_error;
pub mod forgotten;
pub mod form;
pub mod grants;
pub mod identity;
pub mod lab;
pub mod labels;
pub mod lifecycle;
pub mod manifest;
pub mod names;
pub mod operation_record;
pub mod options;
mod path;
pub mod policy;
pub mod progress;
pub mod quota;
pub mod record;
pub mod secret;
pub mod spawn;
pub mod stage;
pub mod token;
pub mod volumes;
