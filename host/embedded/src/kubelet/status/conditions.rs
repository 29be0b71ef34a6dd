//! The conditions of a pod, with the reasons and messages of a kubelet.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{has_succeeded, is_final};

/// Returns the conditions of a pod whose phase and containers are known. A condition keeps its transition time while
/// its status does not change.
pub(super) fn from_status(status: &PodStatus, now: Timestamp) -> Vec<PodCondition> {
    let ready = ready(status);
    let mut conditions = vec![
        condition("PodScheduled", true),
        condition("PodReadyToStartContainers", status.pod_ip.is_some() && !is_final(Some(status))),
        initialized(status),
        PodCondition { type_: "ContainersReady".to_owned(), ..ready.clone() },
        ready,
    ];
    // The kubelet itself ends pods for an eviction and for a shutdown of the node.
    if matches!(status.reason.as_deref(), Some("Evicted" | "Terminated")) {
        conditions.push(PodCondition {
            reason: Some("TerminationByKubelet".to_owned()),
            message: status.message.clone(),
            ..condition("DisruptionTarget", true)
        });
    }
    let previous = status.conditions.as_deref().unwrap_or_default();
    conditions.into_iter().map(|condition| timed(condition, previous, now)).collect()
}

/// Returns the status of a pod that fits on no node.
pub(crate) fn unscheduled(pod: &Pod, message: &str, now: Timestamp) -> PodStatus {
    let previous = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let refused = PodCondition {
        reason: Some("Unschedulable".to_owned()),
        message: Some(message.to_owned()),
        ..condition("PodScheduled", false)
    };
    PodStatus { conditions: Some(vec![timed(refused, previous, now)]), ..PodStatus::default() }
}

fn initialized(status: &PodStatus) -> PodCondition {
    let init = status.init_container_statuses.as_deref().unwrap_or_default();
    let incomplete = names(init, |container| !has_succeeded(container));
    match (status.phase.as_deref(), incomplete) {
        (Some("Succeeded"), _) => {
            PodCondition { reason: Some("PodCompleted".to_owned()), ..condition("Initialized", true) }
        }
        (_, None) => condition("Initialized", true),
        (_, Some(names)) => PodCondition {
            reason: Some("ContainersNotInitialized".to_owned()),
            message: Some(format!("containers with incomplete status: [{names}]")),
            ..condition("Initialized", false)
        },
    }
}

fn ready(status: &PodStatus) -> PodCondition {
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let (reason, message) = match (status.phase.as_deref(), names(containers, |container| !container.ready)) {
        (Some("Succeeded"), _) => ("PodCompleted", None),
        (Some("Failed"), _) => ("PodFailed", None),
        (_, None) => return condition("Ready", true),
        (_, Some(names)) => {
            ("ContainersNotReady", Some(format!("containers with unready status: [{names}]")))
        }
    };
    PodCondition { reason: Some(reason.to_owned()), message, ..condition("Ready", false) }
}

/// Joins the names of the chosen containers as `a b`; `None` if there are none.
fn names(containers: &[ContainerStatus], chosen: impl Fn(&ContainerStatus) -> bool) -> Option<String> {
    let names: Vec<_> = containers.iter().filter(|c| chosen(c)).map(|c| c.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

fn condition(kind: &str, holds: bool) -> PodCondition {
    let status = if holds { "True" } else { "False" };
    PodCondition { type_: kind.to_owned(), status: status.to_owned(), ..PodCondition::default() }
}

fn timed(condition: PodCondition, previous: &[PodCondition], now: Timestamp) -> PodCondition {
    let before = previous.iter().find(|c| c.type_ == condition.type_ && c.status == condition.status);
    let since = before.and_then(|before| before.last_transition_time.clone()).unwrap_or(Time(now));
    PodCondition { last_transition_time: Some(since), ..condition }
}
