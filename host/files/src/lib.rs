//! Reading and writing of files: secret files, files confined to a folder, and files that are written atomically.

pub mod confined_file;
pub mod secret_file;
pub mod whole_file;
pub mod yaml_problem;
