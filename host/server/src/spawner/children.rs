//! What labs start: kernels. They are spawns with drivers of their own, and end with their lab, before it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;
use wasmspawner_core::digest::Digest;
use wasmspawner_core::kernel::{KernelProcess, Launch, PORTS, Ports};
use wasmspawner_core::lab::LabKey;
use wasmspawner_core::lifecycle::{LabStatus, Presence};
use wasmspawner_core::manifest::ParentPod;
use wasmspawner_core::names::LabelValue;
use wasmspawner_core::secret::SecretString;
use wasmspawner_core::spawn::KernelRequest;
use wasmspawner_core::spawn_key::{ChildKind, SpawnKey};

use super::answer::{answer_by, answered};
use super::approve::approve_kernel;
use super::errors::SpawnError;
use super::kernel_links::{LauncherAway, LauncherCommand};
use super::labs::Labs;
use super::message::{Message, StopRequest, Waiting};
use super::requests::TaskResult;
use super::running_lab::RunningLab;
use super::snapshot::LabSnapshot;
use crate::records;
use crate::telemetry::trace::Cause;

/// The program that starts a kernel's process in its pod.
const LAUNCHER: &str = include_str!("../../../../sdk/python/src/wasmspawner/kernel_launcher.py");

/// How long a child that asks for its stop in vain waits before it asks again.
const PAUSE: Duration = Duration::from_secs(1);

/// A kernel at one moment.
#[derive(Debug, Clone)]
pub struct KernelSnapshot {
    /// The pod and its stages, as of a lab.
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

impl Labs {
    /// Starts a kernel. Returns when the start has begun; the events report the rest.
    pub async fn start_kernel(&self, request: KernelRequest) -> Result<(), SpawnError> {
        let key = SpawnKey::kernel(request.lab.clone(), request.name.clone());
        self.can_spawn(&key)?;
        let lab = self.running_lab(&key.lab)?;
        let asked = Instant::now();
        // One user's spawns are approved one after the other, so that the second one counts the first.
        let turn = tokio::time::timeout(records::TRY_FOR, self.user_lock(&key.lab.user)).await;
        let turn = turn.map_err(|_| SpawnError::NoTime)?;
        let waited = asked.elapsed();
        let kernels = self.registry().other_children(&key);
        let names = self.context().names(&key.lab)?;
        let launch = self.launch(&request)?;
        let approved = approve_kernel(&self.context().rules(), names, request, lab, launch, kernels).await?;
        // The time that the policies took does not reduce the time for the cluster.
        let until = answer_by() - waited;
        let (reply, answer) = oneshot::channel();
        self.send(
            &key,
            Message::Spawn(Arc::new(approved), Waiting { until, reply, cause: Cause::current(), turn }),
        );
        answered(answer, until).await
    }

    fn launch(&self, request: &KernelRequest) -> Result<Launch, SpawnError> {
        let config = self.context().config.current();
        let api = config.lab.api_url.as_deref().ok_or(SpawnError::NoKernels)?;
        let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        Ok(Launch {
            url: format!("{api}{}", request.path),
            kernel: request.kernel.clone(),
            token: SecretString::new(token),
            program: LAUNCHER,
        })
    }

    /// The kernels of a lab, sorted by their names.
    pub fn kernels(&self, lab: &LabKey) -> Vec<KernelSnapshot> {
        let kernel = |key: &SpawnKey| key.child.as_ref().is_some_and(|child| child.kind == ChildKind::Kernel);
        let mut keys: Vec<SpawnKey> =
            self.registry().children(lab).map(|(key, _)| key.clone()).filter(kernel).collect();
        keys.sort();
        keys.iter().filter_map(|key| self.kernel(key)).collect()
    }

    /// One kernel.
    pub fn kernel(&self, key: &SpawnKey) -> Option<KernelSnapshot> {
        Some(KernelSnapshot { spawn: self.lab(key)?, process: self.kernel_links().process(key) })
    }

    /// Sends a signal to the processes of a kernel.
    pub fn signal_kernel(&self, key: &SpawnKey, signum: u8) -> Result<(), LauncherAway> {
        self.kernel_links().signal(key, signum)
    }

    /// Starts the process of a kernel anew, in the same pod.
    pub fn restart_kernel(&self, key: &SpawnKey) -> Result<KernelProcess, LauncherAway> {
        self.kernel_links().restart(key)
    }

    /// True if this is the token of the kernel's launcher.
    pub fn is_launcher(&self, key: &SpawnKey, token: &SecretString) -> bool {
        let presented = Digest::of(token.expose().as_bytes()).to_string();
        self.lab(key).is_some_and(|kernel| {
            kernel.about.description.kernel.as_ref().is_some_and(|kernel| kernel.launcher == presented)
        })
    }

    /// The commands for a kernel's launcher; `None` if launchers hold half of all connections already, because the rest is
    /// for the Hub and for people.
    pub fn connect_launcher(&self, key: &SpawnKey) -> Option<mpsc::Receiver<LauncherCommand>> {
        let most = self.context().config.current().http.max_connections / 2;
        self.kernel_links().connect(key, most.max(1))
    }

    /// Notes what a kernel's launcher says about its process.
    pub fn report_process(&self, key: &SpawnKey, process: KernelProcess) {
        self.kernel_links().report(key, process);
    }

    /// A lab that runs.
    fn running_lab(&self, lab: &LabKey) -> Result<RunningLab, SpawnError> {
        let view = self.view(&lab.clone().into());
        let snapshot = view.as_ref().and_then(|view| view.snapshot.clone()).ok_or(SpawnError::NoLab)?;
        if snapshot.status != LabStatus::Running {
            return Err(SpawnError::LabNotRunning);
        }
        let known = view.and_then(|view| {
            let (place, uid) = (view.place?, view.pod_uid?);
            let pod =
                ParentPod { name: place.pod.to_string(), uid, spawn: LabelValue::parse(view.record?).ok()? };
            Some(RunningLab { place, pod, description: Arc::clone(&snapshot.about.description) })
        });
        // The pod of a running lab can be missing for a moment, until the lab ends too.
        known.ok_or(SpawnError::LabNotRunning)
    }

    /// True while the lab runs in this pod.
    pub(super) fn is_running_as(&self, lab: &LabKey, pod: &ParentPod) -> bool {
        self.view(&lab.clone().into()).is_some_and(|view| {
            let alive = view
                .snapshot
                .is_some_and(|lab| matches!(lab.status, LabStatus::Running | LabStatus::Starting));
            alive
                && view.record.as_deref() == Some(pod.spawn.as_str())
                && view.pod_uid.as_ref() == Some(&pod.uid)
        })
    }

    /// Whether a lab has children; a child has none.
    pub(super) fn children_of(&self, key: &SpawnKey) -> Presence {
        if !key.is_lab() {
            return Presence::Missing;
        }
        let registry = self.registry();
        let presence = |view: &super::view::View| match &view.snapshot {
            Some(child) if child.status != LabStatus::Terminating => Presence::Present,
            Some(_) => Presence::Terminating,
            None if view.record.is_some() => Presence::Terminating,
            None => Presence::Missing,
        };
        let children = registry.children(&key.lab).map(|(_, handle)| presence(&handle.view.borrow()));
        children.max().unwrap_or_default()
    }

    /// Begins to stop the children of a lab.
    pub(super) async fn stop_children(&self, lab: &LabKey) -> TaskResult {
        let children: Vec<SpawnKey> = {
            let registry = self.registry();
            let alive = |handle: &super::registry::Handle| handle.view.borrow().snapshot.is_some();
            registry.children(lab).filter(|(_, handle)| alive(handle)).map(|(key, _)| key.clone()).collect()
        };
        let stops = children.iter().map(async |child| {
            let request = StopRequest {
                because: Some("The lab is being stopped".to_owned()),
                ..StopRequest::by("wasmspawner")
            };
            if let Err(error) = self.ask_stop(child, request).await {
                tracing::debug!(%child, %error, "a child of a lab cannot be stopped now; it is tried again");
            }
        });
        futures::future::join_all(stops).await;
        TaskResult::ChildrenStopping
    }

    /// Stops a child whose lab does not run any more.
    pub(super) async fn stop_orphan(&self, child: &SpawnKey) {
        tracing::info!(%child, "a child is stopped because its lab has ended");
        loop {
            match self.ask_stop(child, StopRequest::by("wasmspawner")).await {
                Ok(()) | Err(SpawnError::Refused(_)) => return,
                Err(error) => tracing::warn!(%child, %error, "it cannot be stopped now; it is tried again"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Stops the children whose labs have ended while the service did not run.
    pub(super) fn stop_orphans(&self) {
        let orphans: Vec<SpawnKey> = {
            let registry = self.registry();
            let alive = |lab: &LabKey| {
                registry.get(&lab.clone().into()).is_some_and(|handle| {
                    let view = handle.view.borrow();
                    view.snapshot.as_ref().is_some_and(|lab| lab.status != LabStatus::Failed)
                })
            };
            let children = registry.iter().map(|(key, _)| key).filter(|key| !key.is_lab());
            children.filter(|key| !alive(&key.lab)).cloned().collect()
        };
        for child in orphans {
            let labs = self.clone();
            tokio::spawn(async move { labs.stop_orphan(&child).await });
        }
    }
}
