//! A container of the pod: what was asked for and what became of it.

use k8s_openapi::api::core::v1::{
    Container as ContainerSpec, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, PodSpec,
    PodStatus,
};

/// What a container is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Runs to its end before the main containers start.
    Init,
    /// An init container that stays (`restartPolicy: Always`); the others wait only until it has started.
    Sidecar,
    /// Runs beside the lab, or is the lab.
    Main,
}

/// One container, from the pod's spec, its status, or both.
pub(super) struct Container<'a> {
    pub(super) name: &'a str,
    pub(super) role: Role,
    image: &'a str,
    status: Option<&'a ContainerStatus>,
}

impl<'a> Container<'a> {
    /// Init containers first. Containers that only the status knows come after those of the spec.
    pub(super) fn all(spec: Option<&'a PodSpec>, status: Option<&'a PodStatus>) -> Vec<Self> {
        let init_specs = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
        let main_specs = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
        let init = status.and_then(|status| status.init_container_statuses.as_deref()).unwrap_or_default();
        let main = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
        let mut all = Self::of_group(init_specs, init, Role::Init);
        all.extend(Self::of_group(main_specs, main, Role::Main));
        all
    }

    fn of_group(specs: &'a [ContainerSpec], statuses: &'a [ContainerStatus], role: Role) -> Vec<Self> {
        let specified = specs.iter().map(|spec| Self {
            name: &spec.name,
            role: if role == Role::Init && spec.restart_policy.as_deref() == Some("Always") {
                Role::Sidecar
            } else {
                role
            },
            image: spec.image.as_deref().unwrap_or_default(),
            status: statuses.iter().find(|status| status.name == spec.name),
        });
        let unspecified = statuses
            .iter()
            .filter(|status| !specs.iter().any(|spec| spec.name == status.name))
            .map(|status| Self { name: &status.name, role, image: &status.image, status: Some(status) });
        specified.chain(unspecified).collect()
    }

    /// The image as it was asked for; the status may know it by another name.
    pub(super) fn image(&self) -> &'a str {
        if self.image.is_empty() {
            self.status.map_or("", |status| status.image.as_str())
        } else {
            self.image
        }
    }

    pub(super) fn waiting(&self) -> Option<&'a ContainerStateWaiting> {
        self.status?.state.as_ref()?.waiting.as_ref()
    }

    pub(super) fn waiting_reason(&self) -> &'a str {
        self.waiting().and_then(|waiting| waiting.reason.as_deref()).unwrap_or_default()
    }

    /// How it ended, if it is not running again.
    pub(super) fn terminated(&self) -> Option<&'a ContainerStateTerminated> {
        self.status?.state.as_ref()?.terminated.as_ref()
    }

    /// How it ended last, whether or not it is running again.
    pub(super) fn last_end(&self) -> Option<&'a ContainerStateTerminated> {
        self.terminated().or_else(|| self.status?.last_state.as_ref()?.terminated.as_ref())
    }

    pub(super) fn is_running(&self) -> bool {
        self.status.and_then(|status| status.state.as_ref()).is_some_and(|state| state.running.is_some())
    }

    /// True once a process of it ran, even if it ended since.
    pub(super) fn has_run(&self) -> bool {
        self.is_running() || self.last_end().is_some() || self.restarts() > 0
    }

    pub(super) fn is_ready(&self) -> bool {
        self.status.is_some_and(|status| status.ready)
    }

    pub(super) fn restarts(&self) -> u32 {
        self.status.map_or(0, |status| u32::try_from(status.restart_count).unwrap_or(0))
    }

    /// True if nothing waits for this container any more.
    pub(super) fn is_done(&self) -> bool {
        match self.role {
            Role::Init => self.terminated().is_some_and(|end| end.exit_code == 0),
            Role::Sidecar => self.status.is_some_and(|status| status.started == Some(true)),
            Role::Main => self.is_ready(),
        }
    }
}
