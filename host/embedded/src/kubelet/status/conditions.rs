//! The pod's conditions, with the reasons and messages a kubelet writes.

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Pod, PodCondition, PodStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::{
    phase::Phase,
    record::{ContainerRecord, PodRecord},
};

/// A condition before its times are known.
struct Verdict {
    kind: &'static str,
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Verdict {
    fn holds(kind: &'static str) -> Self {
        Self { kind, holds: true, reason: None, message: None }
    }

    fn fails(kind: &'static str, reason: &'static str, message: Option<String>) -> Self {
        Self { kind, holds: false, reason: Some(reason), message }
    }
}

pub(super) fn of(
    pod: &Pod,
    record: &PodRecord,
    phase: Phase,
    previous: &[PodCondition],
    now: Timestamp,
) -> Vec<PodCondition> {
    let mut verdicts = vec![
        Verdict::holds("PodScheduled"),
        Verdict {
            holds: record.pod_ip.is_some() && !phase.is_final(),
            ..Verdict::holds("PodReadyToStartContainers")
        },
        initialized(record, phase),
        containers_ready(record, phase),
        ready(pod, record, phase, previous),
    ];
    if let Some(end) = &record.disruption {
        verdicts.push(Verdict { message: Some(end.message.clone()), ..Verdict::holds("DisruptionTarget") });
    }
    let mut conditions: Vec<_> = verdicts.into_iter().map(|verdict| timed(verdict, previous, now)).collect();
    if let (Some(end), Some(condition)) = (&record.disruption, conditions.last_mut()) {
        condition.reason = Some(end.reason.clone());
    }
    conditions
}

/// The status of a pod that no node can take.
pub(crate) fn unscheduled(pod: &Pod, message: &str, now: Timestamp) -> PodStatus {
    let previous = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let verdict = Verdict::fails("PodScheduled", "Unschedulable", Some(message.to_owned()));
    PodStatus { conditions: Some(vec![timed(verdict, previous, now)]), ..PodStatus::default() }
}

fn initialized(record: &PodRecord, phase: Phase) -> Verdict {
    let incomplete = names(&record.init, |container| !container.initialized());
    match (phase, incomplete) {
        (Phase::Succeeded, _) => Verdict { reason: Some("PodCompleted"), ..Verdict::holds("Initialized") },
        (_, None) => Verdict::holds("Initialized"),
        (_, Some(names)) => Verdict::fails(
            "Initialized",
            "ContainersNotInitialized",
            Some(format!("containers with incomplete status: [{names}]")),
        ),
    }
}

fn containers_ready(record: &PodRecord, phase: Phase) -> Verdict {
    let sidecars = record.init.iter().filter(|container| container.sidecar).cloned();
    let relevant: Vec<_> = sidecars.chain(record.containers.iter().cloned()).collect();
    match (phase, names(&relevant, |container| !container.ready)) {
        (Phase::Succeeded, _) => Verdict::fails("ContainersReady", "PodCompleted", None),
        (Phase::Failed, _) => Verdict::fails("ContainersReady", "PodFailed", None),
        (_, None) => Verdict::holds("ContainersReady"),
        (_, Some(names)) => Verdict::fails(
            "ContainersReady",
            "ContainersNotReady",
            Some(format!("containers with unready status: [{names}]")),
        ),
    }
}

fn ready(pod: &Pod, record: &PodRecord, phase: Phase, previous: &[PodCondition]) -> Verdict {
    if record.node_lost {
        return Verdict { holds: false, ..Verdict::holds("Ready") };
    }
    let containers = containers_ready(record, phase);
    if !containers.holds {
        return Verdict { kind: "Ready", ..containers };
    }
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_deref()).unwrap_or_default();
    let complaints: Vec<_> = gates
        .iter()
        .filter_map(|gate| {
            let kind = &gate.condition_type;
            match previous.iter().find(|condition| condition.type_ == *kind) {
                None => {
                    Some(format!("corresponding condition of pod readiness gate {kind:?} does not exist."))
                }
                Some(condition) if condition.status != "True" => {
                    let status = &condition.status;
                    Some(format!("the status of pod readiness gate {kind:?} is not \"True\", but {status}"))
                }
                Some(_) => None,
            }
        })
        .collect();
    if complaints.is_empty() {
        Verdict::holds("Ready")
    } else {
        Verdict::fails("Ready", "ReadinessGatesNotReady", Some(complaints.join(", ")))
    }
}

/// `a b` for the containers that are chosen, `None` if there are none.
fn names(containers: &[ContainerRecord], chosen: impl Fn(&ContainerRecord) -> bool) -> Option<String> {
    let names: Vec<_> = containers.iter().filter(|c| chosen(c)).map(|c| c.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// The condition, which keeps its transition time while its status stays.
fn timed(verdict: Verdict, previous: &[PodCondition], now: Timestamp) -> PodCondition {
    let status = if verdict.holds { "True" } else { "False" };
    let since = previous
        .iter()
        .find(|condition| condition.type_ == verdict.kind && condition.status == status)
        .and_then(|condition| condition.last_transition_time.clone());
    PodCondition {
        type_: verdict.kind.to_owned(),
        status: status.to_owned(),
        reason: verdict.reason.map(str::to_owned),
        message: verdict.message,
        last_transition_time: Some(since.unwrap_or(Time(now))),
        ..PodCondition::default()
    }
}
