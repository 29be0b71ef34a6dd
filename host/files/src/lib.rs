//! Files: private ones, confined ones, and ones that are written completely or not at all.

pub mod confined_file;
pub mod secret_file;
pub mod whole_file;
pub mod yaml_problem;
