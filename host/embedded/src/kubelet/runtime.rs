//! What runs the containers of a pod: local processes, or nothing at all.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodStatus};

use super::env::PodContext;
use super::exit::Exit;
use super::image::ImageState;
use super::node::{Node, NodeRuntime};
use super::process::{Launch, PodProcess, ProcessRun};
use super::simulated::{SimulatedPod, SimulatedRun};
use super::status::running_since;

#[derive(Debug)]
pub(crate) enum Run {
    Process(ProcessRun),
    Simulated(SimulatedRun),
}

impl Run {
    pub(crate) async fn wait(&mut self) -> Exit {
        match self {
            Self::Process(run) => run.wait().await,
            Self::Simulated(run) => run.wait().await,
        }
    }

    /// Sends TERM.
    pub(crate) fn terminate(&mut self) {
        match self {
            Self::Process(run) => run.terminate(),
            Self::Simulated(run) => run.terminate(),
        }
    }

    /// Sends KILL.
    pub(crate) fn kill(&mut self) {
        match self {
            Self::Process(run) => run.kill(),
            Self::Simulated(run) => run.kill(),
        }
    }
}

/// The part of the runtime that belongs to one pod.
#[derive(Debug)]
pub(crate) enum PodRuntime {
    Process(PodProcess),
    Simulated(SimulatedPod),
}

impl PodRuntime {
    /// The runtime for a pod of this node. The error says which annotation makes no sense; the pod then runs without
    /// faults.
    pub(crate) fn of(node: &Node, pod: &Pod) -> (Self, Result<(), String>) {
        match &node.runtime {
            NodeRuntime::Process { options, state } => {
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                (Self::Process(PodProcess::new(options.clone(), state.clone(), uid)), Ok(()))
            }
            NodeRuntime::Simulated(options) => {
                let (pod, annotations) = SimulatedPod::of(pod, *options);
                (Self::Simulated(pod), annotations)
            }
        }
    }

    /// The first part of a container id.
    pub(crate) fn scheme(&self) -> &'static str {
        match self {
            Self::Process(_) => "process",
            Self::Simulated(_) => "simulated",
        }
    }

    pub(crate) fn scheduling_delay(&self) -> Duration {
        match self {
            Self::Process(_) => Duration::ZERO,
            Self::Simulated(pod) => pod.delays().schedule,
        }
    }

    /// What of a pod's spec cannot be had here.
    pub(crate) fn unsupported(&self, pod: &Pod) -> Option<String> {
        match self {
            Self::Process(_) => PodProcess::unsupported(pod),
            Self::Simulated(_) => None,
        }
    }

    /// Brings the status of a container up to date after a restart of this program. Returns its run, if it still runs.
    pub(crate) fn adopt(&self, uid: &str, known: &mut ContainerStatus, now: Timestamp) -> Option<Run> {
        match self {
            Self::Process(pod) => pod.adopt(uid, known, now).map(Run::Process),
            Self::Simulated(pod) => running_since(known).map(|_| Run::Simulated(pod.resume())),
        }
    }

    /// Creates the pod's volumes. The error is the message of a `FailedMount` event.
    pub(crate) async fn mount(&self, context: &PodContext<'_>) -> Result<(), String> {
        match self {
            Self::Process(pod) => pod.mount(context).await,
            Self::Simulated(_) => Ok(()),
        }
    }

    pub(crate) fn image(&self, container: &Container) -> ImageState {
        match self {
            Self::Process(pod) => pod.image(container),
            Self::Simulated(pod) => pod.image(container),
        }
    }

    /// Everything that a process is started with; nothing for a simulated container. The error is the message of a
    /// `CreateContainerConfigError`.
    pub(crate) async fn prepare(
        &self,
        context: &PodContext<'_>,
        container: &Container,
    ) -> Result<Option<Launch>, String> {
        match self {
            Self::Process(pod) => pod.prepare(context, container).await.map(Some),
            Self::Simulated(pod) => pod.configure(container, context.pod).map(|()| None),
        }
    }

    pub(crate) fn start(
        &self,
        container: &Container,
        init: bool,
        launch: Option<&Launch>,
        mark: &str,
        restarts: u32,
        now: Timestamp,
    ) -> Result<Run, Exit> {
        match (self, launch) {
            (Self::Process(pod), Some(launch)) => {
                pod.start(&container.name, launch, mark, restarts, now).map(Run::Process)
            }
            (Self::Process(_), None) => Err(Exit::not_started("nothing was prepared")),
            (Self::Simulated(pod), _) => Ok(Run::Simulated(pod.start(container, init))),
        }
    }

    /// How long a simulated container takes to become ready; nothing for a process, which is asked.
    pub(crate) fn ready_after(&self) -> Option<Duration> {
        match self {
            Self::Process(_) => None,
            Self::Simulated(pod) => Some(pod.delays().ready),
        }
    }

    /// What the readiness probe of a simulated container complains about now.
    pub(crate) fn unready(&self, container: &Container, pod_ip: IpAddr) -> Option<String> {
        match self {
            Self::Process(_) => None,
            Self::Simulated(pod) => pod.unready(container, pod_ip),
        }
    }

    /// How long the pod runs until the node evicts it, if it does.
    pub(crate) fn evicted_after(&self) -> Option<Duration> {
        match self {
            Self::Process(_) => None,
            Self::Simulated(pod) => pod.evicted_after(),
        }
    }
}

/// Whether any container of the pod runs.
pub(crate) fn any_runs(status: &PodStatus) -> bool {
    status.container_statuses.iter().flatten().any(|container| running_since(container).is_some())
}
