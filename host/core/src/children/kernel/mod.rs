//! Jupyter kernels that a lab starts, each in a pod of its own, in the lab's environment.

mod connection;
mod launch;
mod process;

pub use connection::{Connection, CurveKeys, PORTS, Ports};
pub use launch::{Kernel, Launch, LauncherFiles, MOUNT_PATH};
pub use process::{KernelProcess, ProcessState};
