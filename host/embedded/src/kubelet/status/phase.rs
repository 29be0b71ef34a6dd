//! The pod's phase. Source: Kubernetes documentation, "Pod phase".

use k8s_openapi::api::core::v1::Pod;

use super::record::{ContainerRecord, ContainerState, PodRecord};
use crate::kubelet::restart::RestartPolicy;

/// `Pod.status.phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// The pod will never run again.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The phase of a pod with these containers.
pub(crate) fn of(pod: &Pod, record: &PodRecord) -> Phase {
    if record.end.is_some() {
        return Phase::Failed;
    }
    let policy = RestartPolicy::parse(pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()));
    let plain_init = || record.init.iter().filter(|container| !container.sidecar);
    if policy == RestartPolicy::Never
        && plain_init().any(|init| exit_code(init).is_some_and(|code| code != 0))
    {
        return Phase::Failed;
    }
    let begun = record.containers.iter().any(|container| !never_ran(container));
    if !begun && !record.init.iter().all(ContainerRecord::initialized) {
        return Phase::Pending;
    }
    if record.containers.iter().any(never_ran) {
        return Phase::Pending;
    }
    let ends: Option<Vec<i32>> = record.containers.iter().map(exit_code).collect();
    match ends {
        Some(codes) if !codes.iter().any(|code| policy.restarts(*code)) => {
            if codes.iter().all(|code| *code == 0) { Phase::Succeeded } else { Phase::Failed }
        }
        _ => Phase::Running,
    }
}

fn never_ran(container: &ContainerRecord) -> bool {
    matches!(container.state, ContainerState::Waiting { .. }) && container.last.is_none()
}

/// The exit code of a container that does not run now.
fn exit_code(container: &ContainerRecord) -> Option<i32> {
    match &container.state {
        ContainerState::Terminated(end) => Some(end.exit_code),
        _ => None,
    }
}
