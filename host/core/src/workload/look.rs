//! The state of a lab in a workload, derived from the workload and its pods.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use super::{LabMark, LabPod, Revisions, Workload, WorkloadState, choose};
use crate::lifecycle::Presence;
use crate::lifecycle::stage::{self, Analysis, Stage, StagePolicy};
use crate::names::lab::JobId;

/// The observed state of a workload.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The uid of the workload that has the lab; `None` if the lab was never added to it.
    pub uid: Option<&'a str>,
    /// The state of the workload that has this name now; `None` if there is none.
    pub state: Option<&'a WorkloadState>,
    /// The workload's pods with the lab, those of earlier operations included.
    pub pods: &'a [Arc<LabPod>],
    /// The revisions of workloads in the workload's namespace.
    pub revisions: &'a Revisions,
    /// The mark of the lab.
    pub mark: &'a LabMark,
    /// The operation that started the lab; `None` if it is unknown.
    pub operation: Option<JobId>,
    /// The uid of the lab's previous pod.
    pub kept: Option<&'a str>,
}

/// The state of the lab.
#[derive(Debug, Clone)]
pub struct Look {
    /// The presence of the lab's parts in the template, or in a pod.
    pub presence: Presence,
    /// The pod that belongs to the lab.
    pub pod: Option<Arc<LabPod>>,
    /// The reason why the workload's pods are not replaced.
    pub stuck: Option<String>,
    /// The stage of a lab that should run but has no pod, with the reason. The stage tells whether the lab has ended.
    without_pod: Option<(Stage, &'static str, String)>,
}

/// Derives the state of a lab from its workload.
pub fn look(seen: &Seen<'_>) -> Look {
    let Seen { workload, uid, state, pods, revisions, mark, operation, kept } = seen;
    // Another workload of the same name does not have the lab.
    let state = state.filter(|state| *uid == Some(state.uid.as_str()));
    let in_template = state.and_then(|state| state.labs.get(mark));
    // A lab that was never added has no pods; any pods with its mark are from an earlier lab of the same record. A pod
    // that only has the label was not created by the workload.
    let ours =
        |pod: &&Arc<LabPod>| pod.mark == **mark && uid.is_some_and(|uid| pod.is_of(workload, uid, revisions));
    let ours: Vec<Arc<LabPod>> = pods.iter().filter(ours).cloned().collect();
    let presence = match in_template {
        Some(_) => Presence::Present,
        None if ours.is_empty() => Presence::Missing,
        None => Presence::Terminating,
    };
    let end = end(workload, state, in_template.copied().flatten(), *operation);
    let pod =
        operation.and_then(|operation| choose(&ours, operation, *kept)).filter(|_| end.is_none()).cloned();
    let waiting =
        || (Stage::Scheduling, "Rollout", format!("Waiting until {workload} has a pod with the lab."));
    Look {
        presence,
        without_pod: end.or_else(|| pod.is_none().then(waiting)),
        pod,
        stuck: state.and_then(|state| stuck(workload, state)),
    }
}

/// Returns the end of a lab that cannot be in the workload any more.
fn end(
    workload: &Workload,
    state: Option<&WorkloadState>,
    in_template: Option<JobId>,
    operation: Option<JobId>,
) -> Option<(Stage, &'static str, String)> {
    let (reason, message) = match state {
        None => ("WorkloadDeleted", format!("{workload} was deleted, and the lab with it.")),
        Some(state) if state.deleting => {
            ("WorkloadDeleted", format!("{workload} is being deleted, and the lab with it."))
        }
        Some(_) if in_template.is_none() || in_template != operation => (
            "TakenOut",
            format!(
                "Somebody has taken the lab out of {workload}: it was rolled back, or replaced by a version without the lab."
            ),
        ),
        Some(state) if state.replicas == Some(0) => {
            ("ScaledToZero", format!("{workload} was scaled to zero, so the lab has no pod any more."))
        }
        Some(_) => return None,
    };
    Some((Stage::Terminating, reason, message))
}

/// Returns the reason why pods are not replaced.
fn stuck(workload: &Workload, state: &WorkloadState) -> Option<String> {
    if state.paused {
        return Some(format!("{workload} is paused; its pods are replaced when its owner resumes it"));
    }
    state.trouble.as_ref().map(|trouble| format!("{workload}: {trouble}"))
}

impl Look {
    /// Returns the stage of the lab.
    pub fn analysis(&self, events: &[Event], policy: &StagePolicy, now: Timestamp) -> Analysis {
        if let Some((stage, reason, message)) = &self.without_pod {
            let message = match &self.stuck {
                Some(stuck) if *stage != Stage::Terminating => format!("{message} ({stuck})"),
                _ => message.clone(),
            };
            return Analysis { stage: *stage, reason: (*reason).to_owned(), message, ..Analysis::unknown() };
        }
        let pod = self.pod.as_ref().map(|pod| &pod.pod);
        stage::analyze(pod, events, policy, now)
    }
}
