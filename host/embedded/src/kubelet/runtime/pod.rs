//! One pod's side of the runtime.

use std::{convert::Infallible, sync::atomic::Ordering};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::DeleteParams;

use super::{Adoption, Exit, Health, ImageState, Prepared, Role, Run};
use crate::kubelet::{
    event::{Happening, Journal, Reporter},
    node::{Node, NodeRuntime},
    pod::{Board, Worker},
    process::PodProcess,
    simulated::{Course, Fault},
    status::{ContainerRecord, ContainerState, End, PodRecord},
};

/// What runs the containers of one pod.
#[derive(Debug)]
pub(crate) enum PodRuntime {
    Process(PodProcess),
    Simulated(Course),
}

impl PodRuntime {
    pub(crate) fn of(node: &Node, pod: &Pod, journal: &Journal) -> Self {
        match &node.runtime {
            NodeRuntime::Process { options, state } => {
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                Self::Process(PodProcess::new(options.clone(), state.clone(), uid))
            }
            NodeRuntime::Simulated(options) => {
                Self::Simulated(Course::of(pod, options).unwrap_or_else(|error| {
                    journal.write(Happening::warning("InvalidSimulation", error.to_string()));
                    Course::plain(options)
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

    /// Why the scheduler will not have the pod, if a fault says so.
    pub(crate) fn unschedulable(&self, pod: &Pod, journal: &Journal) -> Option<String> {
        let Self::Simulated(course) = self else { return None };
        if course.strikes(Fault::Unschedulable) {
            return Some("1 Insufficient memory".to_owned());
        }
        if !course.strikes(Fault::PvcUnbound) {
            return None;
        }
        let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        if let Some(claim) = volumes.find_map(|volume| volume.persistent_volume_claim.as_ref()) {
            let message = "no persistent volumes available for this claim and no storage class is set";
            let told = Happening::normal("FailedBinding", message).by(Reporter::VolumeController);
            journal.write(told.of_claim(&claim.claim_name));
        }
        Some("pod has unbound immediate PersistentVolumeClaims".to_owned())
    }

    pub(crate) async fn scheduling_delay(&self) {
        if let Self::Simulated(course) = self
            && !course.script.schedule.is_zero()
        {
            tokio::time::sleep(course.script.schedule).await;
        }
    }

    pub(crate) fn adopt(&self, uid: &str, known: &ContainerRecord, now: Timestamp) -> Adoption {
        match self {
            Self::Process(pod) => pod.adopt(uid, known, now),
            Self::Simulated(course) => match known.state {
                ContainerState::Running { since } => Adoption::Running {
                    run: Run::Simulated(course.resume()),
                    since,
                    restarts: known.restarts,
                },
                _ => Adoption::Fresh,
            },
        }
    }

    /// Creates the pod's volumes. The error is a `FailedMount` event's message.
    pub(crate) async fn mount(&self, worker: &Worker) -> Result<(), String> {
        match self {
            Self::Process(pod) => pod.mount(worker).await,
            Self::Simulated(course) => course.mount_error(&worker.pod).map_or(Ok(()), Err),
        }
    }

    pub(crate) fn image(&self, container: &Container) -> ImageState {
        match self {
            Self::Process(pod) => pod.image(container),
            Self::Simulated(course) => course.image(container),
        }
    }

    /// Everything a container is started with. The error is a `CreateContainerConfigError`'s message.
    pub(crate) async fn prepare(&self, worker: &Worker, container: &Container) -> Result<Prepared, String> {
        match self {
            Self::Process(pod) => Ok(Prepared::Process(Box::new(pod.prepare(worker, container).await?))),
            Self::Simulated(course) => {
                course.config_error(container, &worker.pod).map_or(Ok(Prepared::Simulated), Err)
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
            (Self::Simulated(course), _) => Ok(Run::Simulated(course.start(container, role))),
            (Self::Process(_), Prepared::Simulated) => {
                Err(Exit::not_started("nothing was prepared".to_owned()))
            }
        }
    }

    pub(crate) async fn health(&self, worker: &Worker, container: &Container) -> Health {
        match self {
            Self::Process(pod) => Health::Asked(pod.target(worker, container).await),
            Self::Simulated(course) => Health::Simulated { ready_after: course.script.ready },
        }
    }

    /// What a simulated readiness probe complains about now.
    pub(crate) fn unready(&self, board: &Board, container: &Container) -> Option<String> {
        let Self::Simulated(course) = self else { return None };
        let pod_ip = board.read(|record| record.pod_ip.clone()).unwrap_or_default();
        course.unready(container, &pod_ip)
    }

    /// Nothing of this pod can be ended any more.
    pub(crate) fn is_stuck(&self) -> bool {
        matches!(self, Self::Simulated(course) if course.stuck.load(Ordering::Relaxed))
    }

    /// Until the node evicts the pod.
    pub(crate) async fn evicted(&self, board: &Board) {
        match self {
            Self::Simulated(course) if course.has(Fault::Evicted) => {
                board.until(any_running).await;
                tokio::time::sleep(course.script.after).await;
            }
            _ => std::future::pending().await,
        }
    }

    /// Loses the pod's node, if its fault says so: what the control plane does then, in its order.
    pub(crate) async fn lose_node(&self, worker: &Worker) -> Infallible {
        if let Self::Simulated(course) = self
            && course.has(Fault::NodeLoss)
        {
            worker.board.until(any_running).await;
            tokio::time::sleep(course.script.after).await;
            course.stuck.store(true, Ordering::Relaxed);
            let by_controller = |event: Happening| worker.journal.write(event.by(Reporter::NodeController));
            by_controller(Happening::warning("NodeNotReady", "Node is not ready"));
            worker.board.change(|record| record.node_lost = true);
            tokio::time::sleep(course.script.eviction).await;
            let told = format!("Marking for deletion Pod {}/{}", worker.namespace(), worker.name());
            by_controller(Happening::normal("TaintManagerEviction", told));
            let message = "Taint manager: deleting due to NoExecute taint";
            worker
                .board
                .change(|record| record.disruption = Some(End::new("DeletionByTaintManager", message)));
            if let Err(error) = worker.api().delete(worker.name(), &DeleteParams::default()).await {
                tracing::debug!(pod = worker.name(), %error, "the pod of a lost node was not deleted");
            }
        }
        std::future::pending().await
    }
}

fn any_running(record: &PodRecord) -> bool {
    record.containers.iter().any(|container| matches!(container.state, ContainerState::Running { .. }))
}
