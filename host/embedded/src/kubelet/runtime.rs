//! The runtimes of containers: local processes, or a simulation.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};

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
    pub(crate) fn from_pod(node: &Node, pod: &Pod) -> Self {
        match &node.runtime {
            NodeRuntime::Process { options, state } => {
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                Self::Process(PodProcess::new(options.clone(), state.clone(), uid))
            }
            NodeRuntime::Simulated(options) => Self::Simulated(SimulatedPod::from_pod(pod, *options)),
        }
    }

    pub(crate) fn simulated(&self) -> Option<&SimulatedPod> {
        match self {
            Self::Process(_) => None,
            Self::Simulated(pod) => Some(pod),
        }
    }

    /// Returns the reason for which the pod cannot run here, if there is one.
    pub(crate) fn unsupported(&self, pod: &Pod) -> Option<String> {
        match self {
            Self::Process(_) => PodProcess::unsupported(pod),
            Self::Simulated(simulated) => simulated.mistake.clone(),
        }
    }

    /// Returns the end of the log of a container's run, if it has one.
    pub(crate) fn end_of_log(&self, container: &str, restarts: i32) -> Option<String> {
        match self {
            Self::Process(pod) => pod.end_of_log(container, restarts),
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

    /// Prepares the parameters of a container's process; `None` for a simulated container. The error is the message of
    /// a `CreateContainerConfigError`.
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
        restarts: i32,
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
}
