//! Volumes as directories.
//!
//! There is no mount namespace: a volume is a directory under the kubelet's state directory, and a process is told
//! where (see [`Mounts`]).

mod mounts;
mod plan;
mod write;

pub(crate) use mounts::Mounts;
pub(crate) use plan::{Materialisation, MountError, PlannedFile, plan};
pub(crate) use write::write_files;
