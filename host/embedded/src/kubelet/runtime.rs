//! The seam between a pod's life and what runs its containers.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};

use super::{
    event::{EventDraft, Journal},
    node::{Node, NodeRuntime},
    pod::{PodState, Worker},
    probe::Target,
    process::{Launch, PodProcess, ProcessRun},
    simulated::{SimulatedPod, SimulatedRun},
    status::{ContainerRecord, ContainerState, Termination},
};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) code: i32,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Exit {
    pub(crate) fn of_code(code: i32) -> Self {
        Self { code, reason: if code == 0 { "Completed" } else { "Error" }, message: String::new() }
    }

    /// A container that could not be started counts as one that ended at once.
    pub(crate) fn not_started(message: String) -> Self {
        Self { code: 128, reason: "StartError", message }
    }
}

/// What a container is to its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Init,
    Sidecar,
    Main,
}

/// Whether the node has an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImageState {
    Present,
    Pulls { after: Duration },
    Unavailable { after: Duration, message: String },
    Invalid,
}

/// A container that has everything it needs to start.
#[derive(Debug)]
pub(crate) enum Prepared {
    Process(Box<Launch>),
    Simulated,
}

/// A container as it is found after a restart of this program.
#[derive(Debug)]
pub(crate) enum Adoption {
    Running {
        run: Run,
        since: Timestamp,
        restarts: u32,
    },
    Ended {
        end: Termination,
        restarts: u32,
    },
    /// Never started.
    Fresh,
}

/// How a container's health is found out.
#[derive(Debug)]
pub(crate) enum Health {
    Asked(Target),
    Simulated { ready_after: Duration },
}

/// A container that runs.
#[derive(Debug)]
pub(crate) enum Run {
    Process(ProcessRun),
    Simulated(SimulatedRun),
}

impl Run {
    /// Until it ends.
    pub(crate) async fn wait(&mut self) -> Exit {
        match self {
            Self::Process(run) => run.wait().await,
            Self::Simulated(run) => run.wait().await,
        }
    }

    /// TERM.
    pub(crate) fn terminate(&mut self) {
        match self {
            Self::Process(run) => run.terminate(),
            Self::Simulated(run) => run.terminate(),
        }
    }

    /// KILL.
    pub(crate) fn kill(&mut self) {
        match self {
            Self::Process(run) => run.kill(),
            Self::Simulated(run) => run.kill(),
        }
    }
}

/// What runs the containers of one pod.
#[derive(Debug)]
pub(crate) enum PodRuntime {
    Process(PodProcess),
    Simulated(SimulatedPod),
}

impl PodRuntime {
    pub(crate) fn of(node: &Node, pod: &Pod, journal: &Journal) -> Self {
        match &node.runtime {
            NodeRuntime::Process { options, state } => {
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                Self::Process(PodProcess::new(options.clone(), state.clone(), uid))
            }
            NodeRuntime::Simulated(options) => {
                Self::Simulated(SimulatedPod::of(pod, *options).unwrap_or_else(|error| {
                    journal.write(EventDraft::warning("InvalidSimulation", error.to_string()));
                    SimulatedPod::plain(*options)
                }))
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

    pub(crate) fn adopt(&self, uid: &str, known: &ContainerRecord, now: Timestamp) -> Adoption {
        match self {
            Self::Process(pod) => pod.adopt(uid, known, now),
            Self::Simulated(pod) => match known.state {
                ContainerState::Running { since } => {
                    Adoption::Running { run: Run::Simulated(pod.resume()), since, restarts: known.restarts }
                }
                _ => Adoption::Fresh,
            },
        }
    }

    /// Creates the pod's volumes. The error is a `FailedMount` event's message.
    pub(crate) async fn mount(&self, worker: &Worker) -> Result<(), String> {
        match self {
            Self::Process(pod) => pod.mount(worker).await,
            Self::Simulated(_) => Ok(()),
        }
    }

    pub(crate) fn image(&self, container: &Container) -> ImageState {
        match self {
            Self::Process(pod) => pod.image(container),
            Self::Simulated(pod) => pod.image(container),
        }
    }

    /// Everything a container is started with. The error is a `CreateContainerConfigError`'s message.
    pub(crate) async fn prepare(&self, worker: &Worker, container: &Container) -> Result<Prepared, String> {
        match self {
            Self::Process(pod) => Ok(Prepared::Process(Box::new(pod.prepare(worker, container).await?))),
            Self::Simulated(pod) => {
                pod.config_error(container, &worker.pod).map_or(Ok(Prepared::Simulated), Err)
            }
        }
    }

    pub(crate) fn start(
        &self,
        uid: &str,
        container: &Container,
        role: Role,
        prepared: &Prepared,
        restarts: u32,
        now: Timestamp,
    ) -> Result<Run, Exit> {
        match (self, prepared) {
            (Self::Process(pod), Prepared::Process(launch)) => {
                pod.start(uid, &container.name, launch, restarts, now).map(Run::Process)
            }
            (Self::Simulated(pod), _) => Ok(Run::Simulated(pod.start(container, role))),
            (Self::Process(_), Prepared::Simulated) => {
                Err(Exit::not_started("nothing was prepared".to_owned()))
            }
        }
    }

    pub(crate) async fn health(&self, worker: &Worker, container: &Container) -> Health {
        match self {
            Self::Process(pod) => Health::Asked(pod.target(worker, container).await),
            Self::Simulated(pod) => Health::Simulated { ready_after: pod.delays().ready },
        }
    }

    /// What a simulated readiness probe complains about now.
    pub(crate) fn unready(&self, state: &PodState, container: &Container) -> Option<String> {
        let Self::Simulated(pod) = self else { return None };
        let pod_ip = state.read(|record| record.pod_ip.clone()).unwrap_or_default();
        pod.unready(container, &pod_ip)
    }

    /// Until the node evicts the pod.
    pub(crate) async fn evicted(&self, state: &PodState) {
        let after = match self {
            Self::Simulated(pod) => pod.evicted_after(),
            Self::Process(_) => None,
        };
        let Some(after) = after else { return std::future::pending().await };
        let running = |container: &ContainerRecord| matches!(container.state, ContainerState::Running { .. });
        state.until(|record| record.containers.iter().any(running)).await;
        tokio::time::sleep(after).await;
    }
}
