//! What the kubelet knows of a pod and its containers.

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        self as api, Container, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
        ContainerStatus, Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

/// Everything of a pod that its status tells.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct PodRecord {
    pub(crate) host_ip: String,
    pub(crate) pod_ip: Option<String>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) init: Vec<ContainerRecord>,
    pub(crate) containers: Vec<ContainerRecord>,
    /// Set when the pod as a whole has failed (evicted, deadline exceeded), whatever its containers do.
    pub(crate) end: Option<End>,
    /// An init container has failed and will not run again.
    pub(crate) given_up: bool,
    /// Reason and message of the `DisruptionTarget` condition.
    pub(crate) disruption: Option<End>,
}

/// A reason and its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl End {
    pub(crate) fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into() }
    }
}

/// One container.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContainerRecord {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) image_id: String,
    pub(crate) state: ContainerState,
    pub(crate) last: Option<Termination>,
    pub(crate) restarts: u32,
    /// An init container that the pod goes on without waiting for its end.
    pub(crate) sidecar: bool,
    /// Passed its startup probe (or has none).
    pub(crate) started: bool,
    pub(crate) ready: bool,
    /// Of the newest run.
    pub(crate) container_id: Option<String>,
}

/// `ContainerStatus.state`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ContainerState {
    Waiting { reason: String, message: String },
    Running { since: Timestamp },
    Terminated(Termination),
}

/// `ContainerStateTerminated`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Termination {
    pub(crate) exit_code: i32,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Timestamp,
    pub(crate) container_id: Option<String>,
}

impl PodRecord {
    /// The record of a pod at its start, or as its status tells after a restart of the program.
    pub(crate) fn of(pod: &Pod, host_ip: String) -> Self {
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let has_init =
            spec.and_then(|spec| spec.init_containers.as_ref()).is_some_and(|init| !init.is_empty());
        let before = |name: &str, statuses: Option<&Vec<ContainerStatus>>| {
            statuses.into_iter().flatten().find(|status| status.name == name).cloned()
        };
        let init = spec
            .and_then(|spec| spec.init_containers.as_deref())
            .unwrap_or_default()
            .iter()
            .map(|container| {
                let known = before(&container.name, status.and_then(|s| s.init_container_statuses.as_ref()));
                ContainerRecord::of(container, "PodInitializing", known.as_ref())
            })
            .collect();
        let waiting = if has_init { "PodInitializing" } else { "ContainerCreating" };
        let containers = spec
            .map(|spec| spec.containers.as_slice())
            .unwrap_or_default()
            .iter()
            .map(|container| {
                let known = before(&container.name, status.and_then(|s| s.container_statuses.as_ref()));
                ContainerRecord { sidecar: false, ..ContainerRecord::of(container, waiting, known.as_ref()) }
            })
            .collect();
        Self {
            host_ip,
            pod_ip: status.and_then(|status| status.pod_ip.clone()),
            started_at: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
            init,
            containers,
            end: status.filter(|status| status.phase.as_deref() == Some("Failed")).and_then(|status| {
                Some(End {
                    reason: status.reason.clone()?,
                    message: status.message.clone().unwrap_or_default(),
                })
            }),
            ..Self::default()
        }
    }

    /// The container of this name, of either list.
    pub(crate) fn container_mut(&mut self, name: &str) -> Option<&mut ContainerRecord> {
        self.init.iter_mut().chain(&mut self.containers).find(|container| container.name == name)
    }

    /// The container of this name, of either list.
    pub(crate) fn container(&self, name: &str) -> Option<&ContainerRecord> {
        self.init.iter().chain(&self.containers).find(|container| container.name == name)
    }
}

impl ContainerRecord {
    fn of(container: &Container, waiting: &str, known: Option<&ContainerStatus>) -> Self {
        let state = known.and_then(|known| ContainerState::read(known.state.as_ref()?));
        Self {
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
            image_id: known.map(|known| known.image_id.clone()).unwrap_or_default(),
            state: state.unwrap_or_else(|| ContainerState::waiting(waiting, "")),
            last: known.and_then(|known| Termination::read(known.last_state.as_ref()?.terminated.as_ref()?)),
            restarts: known.and_then(|known| u32::try_from(known.restart_count).ok()).unwrap_or_default(),
            sidecar: container.restart_policy.as_deref() == Some("Always"),
            started: known.and_then(|known| known.started).unwrap_or_default(),
            ready: known.is_some_and(|known| known.ready),
            container_id: known.and_then(|known| known.container_id.clone()),
        }
    }

    /// Finished for the purposes of the next init container.
    pub(crate) fn initialized(&self) -> bool {
        match &self.state {
            _ if self.sidecar => self.started,
            ContainerState::Terminated(end) => end.exit_code == 0,
            _ => false,
        }
    }

    pub(super) fn status(&self) -> ContainerStatus {
        let running = matches!(self.state, ContainerState::Running { .. });
        ContainerStatus {
            name: self.name.clone(),
            image: self.image.clone(),
            image_id: self.image_id.clone(),
            state: Some(self.state.write()),
            last_state: Some(self.last.as_ref().map(Termination::write).unwrap_or_default()),
            restart_count: i32::try_from(self.restarts).unwrap_or(i32::MAX),
            ready: self.ready,
            started: Some(running && self.started),
            container_id: self.container_id.clone(),
            ..ContainerStatus::default()
        }
    }
}

impl ContainerState {
    pub(crate) fn waiting(reason: &str, message: impl Into<String>) -> Self {
        Self::Waiting { reason: reason.to_owned(), message: message.into() }
    }

    fn read(state: &api::ContainerState) -> Option<Self> {
        if let Some(running) = &state.running {
            return Some(Self::Running { since: running.started_at.as_ref()?.0 });
        }
        if let Some(end) = &state.terminated {
            return Termination::read(end).map(Self::Terminated);
        }
        let waiting = state.waiting.as_ref()?;
        Some(Self::Waiting {
            reason: waiting.reason.clone().unwrap_or_default(),
            message: waiting.message.clone().unwrap_or_default(),
        })
    }

    fn write(&self) -> api::ContainerState {
        match self {
            Self::Waiting { reason, message } => api::ContainerState {
                waiting: Some(ContainerStateWaiting { reason: some(reason), message: some(message) }),
                ..api::ContainerState::default()
            },
            Self::Running { since } => api::ContainerState {
                running: Some(ContainerStateRunning { started_at: Some(Time(*since)) }),
                ..api::ContainerState::default()
            },
            Self::Terminated(end) => end.write(),
        }
    }
}

impl Termination {
    fn read(end: &ContainerStateTerminated) -> Option<Self> {
        Some(Self {
            exit_code: end.exit_code,
            reason: end.reason.clone().unwrap_or_default(),
            message: end.message.clone().unwrap_or_default(),
            started_at: end.started_at.as_ref().map(|time| time.0),
            finished_at: end.finished_at.as_ref()?.0,
            container_id: end.container_id.clone(),
        })
    }

    fn write(&self) -> api::ContainerState {
        let terminated = ContainerStateTerminated {
            exit_code: self.exit_code,
            reason: some(&self.reason),
            message: some(&self.message),
            started_at: self.started_at.map(Time),
            finished_at: Some(Time(self.finished_at)),
            container_id: self.container_id.clone(),
            ..ContainerStateTerminated::default()
        };
        api::ContainerState { terminated: Some(terminated), ..api::ContainerState::default() }
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
