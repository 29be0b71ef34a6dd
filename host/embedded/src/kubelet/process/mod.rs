//! The process runtime: a container is a local process in its own process group.
//!
//! There are no namespaces: a process sees the machine's file system and network, and listens on its pod's own loopback
//! address. See `README.md` for the data about its pod that a process gets.

mod directory;
mod group;
mod launch;
mod logs;
mod pod;
mod record;
mod run;

pub use record::{LeftoverError, kill_leftovers};

pub(crate) use directory::StateDirectory;
pub(crate) use launch::Launch;
pub(crate) use logs::{cut_logs, open_log};
pub(crate) use pod::PodProcess;
pub(crate) use record::kill_pod;
pub(crate) use run::ProcessRun;
