//! A container of the pod, read from the pod's spec and status.

use k8s_openapi::api::core::v1::{
    Container as ContainerSpec, ContainerState, ContainerStateTerminated, ContainerStatus, PodSpec, PodStatus,
};

use super::message;
use super::reason::Reason;

/// The role of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Runs to completion before the main containers start.
    Init,
    /// An init container that keeps running (`restartPolicy: Always`). The next containers wait only until it has
    /// started.
    Sidecar,
    /// The lab's container, or one that runs beside it.
    Main,
}

/// One container, from the pod's spec, its status, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) role: Role,
    /// The image in the spec. The status may have another name for it.
    pub(super) image: String,
    state: State,
    /// The end of the container before it was restarted.
    previous_end: Option<Box<End>>,
    ready: bool,
    started: bool,
    restarts: u32,
}

/// The state of a container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum State {
    /// The kubelet has not reported a state yet.
    #[default]
    Unknown,
    Waiting(Waiting),
    Running,
    Ended(Box<End>),
}

/// The reason why a container is not running yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    /// The reason, if the analysis knows it.
    known: Option<Reason>,
    /// The reason as the kubelet wrote it; may be empty.
    pub(super) reason: String,
    pub(super) message: Option<String>,
}

/// The end of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) exit_code: i32,
    pub(super) signal: Option<i32>,
    pub(super) reason: Option<Reason>,
    /// The last lines of its log, or what it has written as the reason.
    pub(super) last_words: Option<String>,
}

impl Container {
    /// Returns all containers, init containers first. Containers that only the status knows come after those of the
    /// spec.
    pub(super) fn all(spec: Option<&PodSpec>, status: Option<&PodStatus>) -> Vec<Self> {
        let init_specs = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
        let main_specs = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
        let init = status.and_then(|status| status.init_container_statuses.as_deref()).unwrap_or_default();
        let main = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
        let mut all = Self::of_group(init_specs, init, Role::Init);
        all.extend(Self::of_group(main_specs, main, Role::Main));
        all
    }

    fn of_group(specs: &[ContainerSpec], statuses: &[ContainerStatus], role: Role) -> Vec<Self> {
        let specified = specs.iter().map(|spec| {
            let stays = role == Role::Init && spec.restart_policy.as_deref() == Some("Always");
            let role = if stays { Role::Sidecar } else { role };
            let status = statuses.iter().find(|status| status.name == spec.name);
            let image = spec.image.as_deref().filter(|image| !image.is_empty());
            let image = image.or_else(|| status.map(|status| status.image.as_str())).unwrap_or_default();
            Self::new(&spec.name, role, image, status)
        });
        let unspecified = statuses
            .iter()
            .filter(|status| !specs.iter().any(|spec| spec.name == status.name))
            .map(|status| Self::new(&status.name, role, &status.image, Some(status)));
        specified.chain(unspecified).collect()
    }

    fn new(name: &str, role: Role, image: &str, status: Option<&ContainerStatus>) -> Self {
        let last = status.and_then(|status| status.last_state.as_ref()?.terminated.as_ref());
        Self {
            name: name.to_owned(),
            role,
            image: image.to_owned(),
            state: status.and_then(|status| status.state.as_ref()).map(State::from).unwrap_or_default(),
            previous_end: last.map(|end| Box::new(End::from(end))),
            ready: status.is_some_and(|status| status.ready),
            started: status.is_some_and(|status| status.started == Some(true)),
            restarts: status.map_or(0, |status| u32::try_from(status.restart_count).unwrap_or(0)),
        }
    }

    pub(super) fn waiting(&self) -> Option<&Waiting> {
        match &self.state {
            State::Waiting(waiting) => Some(waiting),
            _ => None,
        }
    }

    pub(super) fn waiting_reason(&self) -> Option<Reason> {
        self.waiting()?.known
    }

    /// Returns the end of the container, unless it is running again.
    pub(super) fn ended(&self) -> Option<&End> {
        match &self.state {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Returns the last end of the container, even if it is running again.
    pub(super) fn last_end(&self) -> Option<&End> {
        self.ended().or(self.previous_end.as_deref())
    }

    /// Returns the exit code of the last end, if that was an error.
    pub(super) fn failed_with(&self) -> Option<i32> {
        self.last_end().map(|end| end.exit_code).filter(|code| *code != 0)
    }

    pub(super) fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// Returns true once the container has run, even if it has ended since.
    pub(super) fn has_run(&self) -> bool {
        self.is_running() || self.last_end().is_some() || self.restarts > 0
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    pub(super) fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Returns true if no other container waits for this one any more.
    pub(super) fn is_done(&self) -> bool {
        match self.role {
            Role::Init => self.ended().is_some_and(|end| end.exit_code == 0),
            Role::Sidecar => self.started,
            Role::Main => self.is_ready(),
        }
    }
}

impl From<&ContainerState> for State {
    fn from(state: &ContainerState) -> Self {
        if let Some(end) = &state.terminated {
            Self::Ended(Box::new(end.into()))
        } else if state.running.is_some() {
            Self::Running
        } else if let Some(waiting) = &state.waiting {
            let reason = waiting.reason.clone().unwrap_or_default();
            Self::Waiting(Waiting { known: Reason::known(&reason), reason, message: waiting.message.clone() })
        } else {
            Self::Unknown
        }
    }
}

impl From<&ContainerStateTerminated> for End {
    fn from(end: &ContainerStateTerminated) -> Self {
        let reason = end.reason.as_deref().and_then(Reason::known);
        let last_words = end.message.as_deref().and_then(message::last_words);
        Self { exit_code: end.exit_code, signal: end.signal, reason, last_words }
    }
}

/// Returns `None` for an absent or empty text: Kubernetes uses both for "no text".
pub(super) fn not_empty(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_is_there_once_whether_spec_or_status_names_it() {
        let pod: k8s_openapi::api::core::v1::Pod = serde_json::from_value(json!({
            "spec": { "containers": [{ "name": "lab", "image": "lab:1" }, { "name": "late", "image": "late:1" }] },
            "status": { "containerStatuses": [
                { "name": "lab", "image": "lab:1", "imageID": "", "ready": true, "restartCount": 0 },
                { "name": "injected", "image": "mesh:1", "imageID": "", "ready": true, "restartCount": 0 },
            ] },
        }))
        .unwrap();
        let containers = Container::all(pod.spec.as_ref(), pod.status.as_ref());
        let names: Vec<&str> = containers.iter().map(|container| container.name.as_str()).collect();
        assert_eq!(names, ["lab", "late", "injected"]);
    }
}
