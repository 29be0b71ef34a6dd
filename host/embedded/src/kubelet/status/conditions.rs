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
struct ConditionDraft {
    kind: &'static str,
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl ConditionDraft {
    fn holds(kind: &'static str) -> Self {
        Self { kind, holds: true, reason: None, message: None }
    }

    fn fails(kind: &'static str, reason: &'static str, message: Option<String>) -> Self {
        Self { kind, holds: false, reason: Some(reason), message }
    }
}

pub(super) fn of(
    record: &PodRecord,
    phase: Phase,
    previous: &[PodCondition],
    now: Timestamp,
) -> Vec<PodCondition> {
    let mut drafts = vec![
        ConditionDraft::holds("PodScheduled"),
        ConditionDraft {
            holds: record.pod_ip.is_some() && !phase.is_final(),
            ..ConditionDraft::holds("PodReadyToStartContainers")
        },
        initialized(record, phase),
        containers_ready(record, phase),
        ConditionDraft { kind: "Ready", ..containers_ready(record, phase) },
    ];
    if let Some(end) = &record.disruption {
        drafts.push(ConditionDraft {
            message: Some(end.message.clone()),
            ..ConditionDraft::holds("DisruptionTarget")
        });
    }
    let mut conditions: Vec<_> = drafts.into_iter().map(|draft| timed(draft, previous, now)).collect();
    if let (Some(end), Some(condition)) = (&record.disruption, conditions.last_mut()) {
        condition.reason = Some(end.reason.clone());
    }
    conditions
}

/// The status of a pod that no node can take.
pub(crate) fn unscheduled(pod: &Pod, message: &str, now: Timestamp) -> PodStatus {
    let previous = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let draft = ConditionDraft::fails("PodScheduled", "Unschedulable", Some(message.to_owned()));
    PodStatus { conditions: Some(vec![timed(draft, previous, now)]), ..PodStatus::default() }
}

fn initialized(record: &PodRecord, phase: Phase) -> ConditionDraft {
    let incomplete = names(&record.init, |container| !container.initialized());
    match (phase, incomplete) {
        (Phase::Succeeded, _) => {
            ConditionDraft { reason: Some("PodCompleted"), ..ConditionDraft::holds("Initialized") }
        }
        (_, None) => ConditionDraft::holds("Initialized"),
        (_, Some(names)) => ConditionDraft::fails(
            "Initialized",
            "ContainersNotInitialized",
            Some(format!("containers with incomplete status: [{names}]")),
        ),
    }
}

fn containers_ready(record: &PodRecord, phase: Phase) -> ConditionDraft {
    let sidecars = record.init.iter().filter(|container| container.sidecar).cloned();
    let relevant: Vec<_> = sidecars.chain(record.containers.iter().cloned()).collect();
    match (phase, names(&relevant, |container| !container.ready)) {
        (Phase::Succeeded, _) => ConditionDraft::fails("ContainersReady", "PodCompleted", None),
        (Phase::Failed, _) => ConditionDraft::fails("ContainersReady", "PodFailed", None),
        (_, None) => ConditionDraft::holds("ContainersReady"),
        (_, Some(names)) => ConditionDraft::fails(
            "ContainersReady",
            "ContainersNotReady",
            Some(format!("containers with unready status: [{names}]")),
        ),
    }
}

/// `a b` for the containers that are chosen, `None` if there are none.
fn names(containers: &[ContainerRecord], chosen: impl Fn(&ContainerRecord) -> bool) -> Option<String> {
    let names: Vec<_> = containers.iter().filter(|c| chosen(c)).map(|c| c.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// The condition, which keeps its transition time while its status stays.
fn timed(draft: ConditionDraft, previous: &[PodCondition], now: Timestamp) -> PodCondition {
    let status = if draft.holds { "True" } else { "False" };
    let since = previous
        .iter()
        .find(|condition| condition.type_ == draft.kind && condition.status == status)
        .and_then(|condition| condition.last_transition_time.clone());
    PodCondition {
        type_: draft.kind.to_owned(),
        status: status.to_owned(),
        reason: draft.reason.map(str::to_owned),
        message: draft.message,
        last_transition_time: Some(since.unwrap_or(Time(now))),
        ..PodCondition::default()
    }
}
