//! Labs in the pods of a workload.

pub use crate::bindings::inject::{Access, Container, Verdict, Volume, VolumeAccess, Workload, WorkloadKind};

impl Default for Access {
    /// No part of the workload except the network, which the lab shares with the other containers of its pod.
    fn default() -> Self {
        Self { volumes: Vec::new(), environment_of: None }
    }
}
