//! `Pod.status` out of what is known of a pod; pure.

mod conditions;
mod phase;
mod record;

use k8s_openapi::{
    api::core::v1::{HostIP, Pod, PodIP, PodStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};

pub(crate) use conditions::unscheduled;
pub(crate) use phase::Phase;
pub(crate) use record::{ContainerRecord, ContainerState, End, PodRecord, Termination};

/// The status that the kubelet writes for its pod at `now`. Conditions that hold as in the `previous` one
/// keep their transition times.
pub(crate) fn pod_status(
    pod: &Pod,
    record: &PodRecord,
    previous: Option<&PodStatus>,
    now: jiff::Timestamp,
) -> PodStatus {
    let phase = phase::of(pod, record);
    let previous = previous.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    PodStatus {
        phase: Some(phase.as_str().to_owned()),
        reason: record.end.as_ref().map(|end| end.reason.clone()),
        message: record.end.as_ref().map(|end| end.message.clone()),
        conditions: Some(conditions::of(record, phase, previous, now)),
        start_time: record.started_at.map(Time),
        host_ip: Some(record.host_ip.clone()),
        host_ips: Some(vec![HostIP { ip: record.host_ip.clone() }]),
        pod_ip: record.pod_ip.clone(),
        pod_ips: record.pod_ip.clone().map(|ip| vec![PodIP { ip }]),
        init_container_statuses: statuses(&record.init),
        container_statuses: statuses(&record.containers),
        ..PodStatus::default()
    }
}

fn statuses(records: &[ContainerRecord]) -> Option<Vec<k8s_openapi::api::core::v1::ContainerStatus>> {
    (!records.is_empty()).then(|| records.iter().map(ContainerRecord::status).collect())
}

#[cfg(test)]
mod tests;
