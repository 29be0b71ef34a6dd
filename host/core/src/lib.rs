//! The pure core of wasmspawner: decisions as data.
//!
//! No code here performs IO, spawns a task or reads a clock: the time (`now`) and all observations are arguments, and
//! actions are returned as values. The crate depends on no library for IO or async tasks.

pub mod access;
pub mod api_group;
pub mod blueprint;
pub mod condition;
pub mod config;
pub mod custom_resource;
pub mod dask;
pub mod definitions;
pub mod difference;
pub mod digest;
pub mod environment;
pub mod field_error;
pub mod forgotten;
pub mod form;
pub mod glob;
pub mod grants;
pub mod identity;
pub mod images;
pub mod kept;
pub mod kernel;
pub mod lab;
pub mod labels;
pub mod lifecycle;
pub mod manifest;
pub mod names;
pub mod operation_record;
pub mod options;
pub mod past_use;
mod path;
pub mod percent;
pub mod policy;
pub mod port_range;
pub mod progress;
pub mod quota;
pub mod record;
pub mod secret;
pub mod spawn;
pub mod spawn_key;
pub mod stage;
mod structural_schema;
pub mod token;
pub mod token_claims;
pub mod user_string;
pub mod volumes;
pub mod workload;
