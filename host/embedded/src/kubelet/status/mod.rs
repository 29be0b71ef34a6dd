//! `Pod.status` as the kubelet writes it. All functions here are pure.

mod conditions;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, Pod, PodIP, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub(crate) use conditions::unscheduled;

use super::restart::RestartPolicy;

/// Returns the initial status of a pod for the kubelet: the stored status, with a state for each container that has
/// none.
pub(crate) fn initial(pod: &Pod, host_ip: String) -> PodStatus {
    let stored = pod.status.clone().unwrap_or_default();
    let spec = spec(pod);
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let reason = if init.is_empty() { "ContainerCreating" } else { "PodInitializing" };
    PodStatus {
        init_container_statuses: statuses(init, "PodInitializing", stored.init_container_statuses),
        container_statuses: statuses(&spec.containers, reason, stored.container_statuses),
        host_ip: Some(host_ip.clone()),
        host_ips: Some(vec![HostIP { ip: host_ip }]),
        ..stored
    }
}

/// Returns the spec of a pod. The API server never leaves it out.
pub(crate) fn spec(pod: &Pod) -> &PodSpec {
    static NONE: std::sync::LazyLock<PodSpec> = std::sync::LazyLock::new(PodSpec::default);
    pod.spec.as_ref().unwrap_or(&NONE)
}

fn statuses(
    containers: &[Container],
    reason: &str,
    stored: Option<Vec<ContainerStatus>>,
) -> Option<Vec<ContainerStatus>> {
    let stored = stored.unwrap_or_default();
    let status = |container: &Container| {
        let known = stored.iter().find(|status| status.name == container.name).cloned();
        known.unwrap_or_else(|| ContainerStatus {
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
            state: Some(waiting(reason, "")),
            last_state: Some(ContainerState::default()),
            started: Some(false),
            ..ContainerStatus::default()
        })
    };
    (!containers.is_empty()).then(|| containers.iter().map(status).collect())
}

/// Sets the phase and the conditions, which follow from the rest of the status.
pub(crate) fn update(pod: &Pod, status: &mut PodStatus, now: Timestamp) {
    status.phase = Some(phase(pod, status).to_owned());
    status.conditions = Some(conditions::from_status(status, now));
}

/// Returns the containers of a pod's status, init containers first.
pub(crate) fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten())
}

pub(crate) fn container<'a>(status: &'a PodStatus, name: &str) -> Option<&'a ContainerStatus> {
    containers(status).find(|container| container.name == name)
}

pub(crate) fn container_mut<'a>(status: &'a mut PodStatus, name: &str) -> Option<&'a mut ContainerStatus> {
    let init = status.init_container_statuses.iter_mut().flatten();
    init.chain(status.container_statuses.iter_mut().flatten()).find(|container| container.name == name)
}

pub(crate) fn set_address(status: &mut PodStatus, ip: String) {
    status.pod_ips = Some(vec![PodIP { ip: ip.clone() }]);
    status.pod_ip = Some(ip);
}

pub(crate) fn waiting(reason: &str, message: impl Into<String>) -> ContainerState {
    let message = Some(message.into()).filter(|message| !message.is_empty());
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

pub(crate) fn running(since: Timestamp) -> ContainerState {
    let running = ContainerStateRunning { started_at: Some(Time(since)) };
    ContainerState { running: Some(running), ..ContainerState::default() }
}

pub(crate) fn terminated(end: ContainerStateTerminated) -> ContainerState {
    ContainerState { terminated: Some(end), ..ContainerState::default() }
}

/// Returns the start time of a running container.
pub(crate) fn running_since(container: &ContainerStatus) -> Option<&Time> {
    container.state.as_ref()?.running.as_ref()?.started_at.as_ref()
}

/// Returns the end of the newest run if the container does not run.
pub(crate) fn end_of(container: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    container.state.as_ref()?.terminated.as_ref()
}

/// True if an init container has succeeded.
fn has_succeeded(container: &ContainerStatus) -> bool {
    end_of(container).is_some_and(|end| end.exit_code == 0)
}

fn never_ran(container: &ContainerStatus) -> bool {
    let state = container.state.as_ref();
    let waits = state.is_none_or(|state| state.running.is_none() && state.terminated.is_none());
    waits && container.last_state.as_ref().is_none_or(|state| state.terminated.is_none())
}

/// Returns the phase (Kubernetes documentation, "Pod phase"). A pod with a reason has failed as a whole.
fn phase(pod: &Pod, status: &PodStatus) -> &'static str {
    if status.reason.is_some() {
        return "Failed";
    }
    let policy = RestartPolicy::parse(spec(pod).restart_policy.as_deref());
    let init = || status.init_container_statuses.iter().flatten();
    if policy == RestartPolicy::Never && init().any(|init| end_of(init).is_some_and(|end| end.exit_code != 0))
    {
        return "Failed";
    }
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let begun = containers.iter().any(|container| !never_ran(container));
    if containers.iter().any(never_ran) || (!begun && !init().all(has_succeeded)) {
        return "Pending";
    }
    let codes: Option<Vec<i32>> =
        containers.iter().map(|container| Some(end_of(container)?.exit_code)).collect();
    match codes {
        Some(codes) if codes.iter().all(|code| *code == 0) && !policy.restarts(0) => "Succeeded",
        Some(codes) if !codes.iter().any(|code| policy.restarts(*code)) => "Failed",
        _ => "Running",
    }
}

/// True if a pod with this status will never run again.
pub(crate) fn is_final(status: Option<&PodStatus>) -> bool {
    matches!(status.and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed"))
}

#[cfg(test)]
mod tests;
