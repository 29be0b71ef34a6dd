//! Kernels: their processes, and the commands for their launchers.

use std::sync::Arc;

use tokio::sync::mpsc;
use wasmspawner_core::children::kernel::{KernelProcess, PORTS, Ports};
use wasmspawner_core::lifecycle::LabStatus;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::spawn_key::{ChildKind, SpawnKey};
use wasmspawner_core::policy::spawn::ChildRequest;

use crate::errors::SpawnError;
use crate::labs::Labs;
use crate::labs::kernel_links::{LauncherAway, LauncherCommand};
use crate::published::snapshot::LabSnapshot;

/// A kernel at one moment.
#[derive(Debug, Clone)]
pub struct KernelSnapshot {
    /// The pod and its stages, in the same form as those of a lab.
    pub spawn: Arc<LabSnapshot>,
    /// The kernel's process; `None` until its launcher has reported it.
    pub process: Option<KernelProcess>,
}

impl KernelSnapshot {
    /// The address and the ports of a kernel whose pod runs.
    pub fn address(&self) -> Option<(&str, Ports)> {
        let running = self.spawn.status == LabStatus::Running;
        self.spawn.address.as_deref().filter(|_| running).map(|address| (address, PORTS))
    }
}

/// The kernels that labs have started. Clones share them.
#[derive(Clone)]
pub struct Kernels(Labs);

impl Kernels {
    /// Creates the view of these labs' kernels.
    pub fn new(labs: Labs) -> Self {
        Self(labs)
    }

    /// Fails if the record of this kernel cannot be read: it may run.
    pub fn require_readable(&self, key: &SpawnKey) -> Result<(), SpawnError> {
        self.0.require_readable(key)
    }

    /// Refuses a kernel that cannot begin to start now, whatever the policies say about it.
    pub fn can_start(&self, key: &SpawnKey) -> Result<(), SpawnError> {
        self.0.can_spawn(key)
    }

    /// Starts a kernel of a running lab. Returns when the start has begun; the events report the rest.
    pub async fn start(&self, request: ChildRequest) -> Result<(), SpawnError> {
        self.0.start_child(request).await
    }

    /// The kernels of a lab, sorted by their names.
    pub fn of_lab(&self, lab: &LabKey) -> Result<Vec<KernelSnapshot>, SpawnError> {
        self.0.require_certain()?;
        let keys = self.0.children_of_kind(lab, ChildKind::Kernel);
        Ok(keys.iter().filter_map(|key| self.get(key)).collect())
    }

    /// The kernel with this key.
    pub fn get(&self, key: &SpawnKey) -> Option<KernelSnapshot> {
        Some(KernelSnapshot { spawn: self.0.lab(key)?, process: self.0.kernel_links().process(key) })
    }

    /// Sends a signal to the processes of a kernel.
    pub fn signal(&self, key: &SpawnKey, signum: u8) -> Result<(), LauncherAway> {
        self.0.kernel_links().signal(key, signum)
    }

    /// Starts the process of a kernel anew, in the same pod.
    pub fn restart(&self, key: &SpawnKey) -> Result<KernelProcess, LauncherAway> {
        self.0.kernel_links().restart(key)
    }

    /// Connects a kernel's launcher, and returns the commands for it. Returns `None` if launchers already hold as many
    /// connections as they may.
    pub fn connect_launcher(&self, key: &SpawnKey) -> Option<mpsc::Receiver<LauncherCommand>> {
        self.0.kernel_links().connect(key, self.0.most_connections_of_pods())
    }

    /// Notes the report of a kernel's launcher about its process.
    pub fn report_process(&self, key: &SpawnKey, process: KernelProcess) {
        self.0.kernel_links().report(key, process);
    }
}
