//! Small values that are checked when they are read: digests, port ranges, patterns, secrets.

pub mod credential;
pub mod difference;
pub mod digest;
pub mod field_error;
pub mod glob;
pub mod log_lines;
pub mod options;
pub mod path;
pub mod percent;
pub mod port_range;
pub mod secret;
pub(crate) mod word;
