//! What a look at a workload and its pods says about a lab in it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use super::{LabMark, LabPod, Revisions, Workload, WorkloadState, choose};
use crate::lab::JobId;
use crate::lifecycle::Presence;
use crate::stage::{self, Analysis, Stage, StagePolicy};

/// What is seen of a workload.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The uid of the workload that has the lab; `None` if the lab was never put in.
    pub uid: Option<&'a str>,
    /// The state of what has the workload's name; `None` if nothing has.
    pub state: Option<&'a WorkloadState>,
    /// Its pods with the lab, those of earlier operations included.
    pub pods: &'a [Arc<LabPod>],
    /// The revisions of workloads in its namespace.
    pub revisions: &'a Revisions,
    /// The lab.
    pub mark: &'a LabMark,
    /// The operation that has started the lab; `None` if none is known.
    pub operation: Option<JobId>,
    /// The uid of the pod that was the lab's.
    pub kept: Option<&'a str>,
}

/// What that says about the lab.
#[derive(Debug, Clone)]
pub struct Look {
    /// Whether something of the lab is in the template, or in a pod.
    pub presence: Presence,
    /// The pod that is the lab's.
    pub pod: Option<Arc<LabPod>>,
    /// Why the workload's pods are not replaced.
    pub stuck: Option<String>,
    /// The stage of a lab that is wanted and has no pod: why not, and whether that is its end.
    without_pod: Option<(Stage, &'static str, String)>,
}

/// Looks at a workload.
pub fn look(seen: &Seen<'_>) -> Look {
    let Seen { workload, uid, state, pods, revisions, mark, operation, kept } = seen;
    // Another workload of the same name is none of the lab's.
    let state = state.filter(|state| *uid == Some(state.uid.as_str()));
    let in_template = state.and_then(|state| state.labs.get(mark));
    // What was never put in has no pods; such are left of an earlier lab of the same record. A pod that only has the label is
    // somebody else's.
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

/// Why a lab cannot be there any more.
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

/// Why pods are not replaced.
fn stuck(workload: &Workload, state: &WorkloadState) -> Option<String> {
    if state.paused {
        return Some(format!("{workload} is paused; its pods are replaced when its owner resumes it"));
    }
    state.trouble.as_ref().map(|trouble| format!("{workload}: {trouble}"))
}

impl Look {
    /// The stage of the lab.
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
