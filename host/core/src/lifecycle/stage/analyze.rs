//! Analyses a pod: answers, in order, the questions that decide its stage.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use super::container::Container;
use super::event::{self, EventView};
use super::notes::Notes;
use super::pod::{ConditionKind, ObservedPod};
use super::pull::Pulls;
use super::reason::Reason;
use super::{Analysis, Stage, StagePolicy, event_fault, message, state_fault};

/// Reads the stage of a lab from its pod, if there is one, and the events about the pod and its volume claims. Events
/// about other objects are ignored.
///
/// Every possible pod has a result. `now` is only compared with the times in pod and events. If the result would change
/// by the passing of time alone, `recheck_at` is the time of the change.
pub fn analyze(
    pod: Option<&ObservedPod>,
    events: &[Event],
    policy: &StagePolicy,
    now: Timestamp,
) -> Analysis {
    let Some(pod) = pod else { return Analysis::unknown() };
    let events = event::about(pod, events);
    let mut notes = Notes::new(now);
    // Containers that were killed with their pod did not fail themselves.
    if !pod.was_taken_down() {
        state_fault::note(pod, &events, policy, &mut notes);
    }
    event_fault::note(pod, &events, policy, &mut notes);
    let noun = policy.noun();
    let conclusion = deletion(pod, noun)
        .or_else(|| end(pod, noun, &notes))
        .or_else(|| fault(&notes))
        .or_else(|| scheduling(pod, noun))
        .or_else(|| pulling(pod, &events, policy, &mut notes))
        .or_else(|| initializing(pod, noun))
        .or_else(|| starting(pod, noun))
        .unwrap_or_else(|| Conclusion::new(Stage::Running, "Ready", format!("Your {noun} is running.")));
    Analysis {
        restarts: pod.main_containers().map(Container::restarts).sum(),
        last_end: state_fault::last_end(pod, noun),
        exit_code: pod.main_containers().find_map(Container::failed_with),
        ..conclusion.with(notes)
    }
}

struct Conclusion {
    stage: Stage,
    reason: String,
    message: String,
}

impl Conclusion {
    fn new(stage: Stage, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { stage, reason: reason.into(), message: message.into() }
    }

    fn with(self, notes: Notes) -> Analysis {
        let Conclusion { stage, reason, message } = self;
        let (findings, recheck_at) = notes.into_parts();
        // The result of a pod that has ended does not change with time.
        let ended = matches!(stage, Stage::Terminating | Stage::Stopped | Stage::Failed | Stage::Unknown);
        let recheck_at = recheck_at.filter(|_| !ended);
        Analysis { stage, reason, message, findings, recheck_at, ..Analysis::unknown() }
    }
}

/// The reason of a pod that somebody deletes. If the cluster needs the machine for another purpose, the pod has a
/// reason of its own.
pub const DELETED: &str = "Deleted";

fn deletion(pod: &ObservedPod, noun: &str) -> Option<Conclusion> {
    pod.deletion?;
    if !pod.condition_is(ConditionKind::DisruptionTarget, "True") {
        return Some(Conclusion::new(Stage::Terminating, DELETED, format!("Your {noun} is being stopped.")));
    }
    let reason = pod.condition_reason(ConditionKind::DisruptionTarget, "True").unwrap_or("DisruptionTarget");
    let detail =
        pod.condition(ConditionKind::DisruptionTarget).and_then(|condition| condition.message.as_deref());
    Some(Conclusion::new(Stage::Terminating, reason, message::evicted(noun, detail.unwrap_or_default())))
}

fn end(pod: &ObservedPod, noun: &str, notes: &Notes) -> Option<Conclusion> {
    match pod.phase.as_str() {
        "Succeeded" => {
            Some(Conclusion::new(Stage::Stopped, Reason::Completed, format!("Your {noun} has ended.")))
        }
        "Failed" => Some(failure(pod, noun, notes)),
        "Unknown" => Some(Conclusion::new(
            Stage::Unknown,
            pod.reason.as_deref().unwrap_or(Reason::NodeLost.as_str()),
            message::node_not_ready(noun),
        )),
        _ => None,
    }
}

/// Returns the conclusion about a failed pod. The pod's own reason is preferred: the containers of an evicted pod were
/// merely killed.
fn failure(pod: &ObservedPod, noun: &str, notes: &Notes) -> Conclusion {
    let detail = pod.message.as_deref().unwrap_or_default();
    let unexplained = || message::with_detail(&format!("Your {noun} has failed"), detail);
    let Some(reason) = pod.reason.as_deref() else {
        return fault(notes).unwrap_or_else(|| Conclusion::new(Stage::Failed, "PodFailed", unexplained()));
    };
    let message = match Reason::known(reason) {
        Some(Reason::Evicted) => message::evicted(noun, detail),
        Some(Reason::DeadlineExceeded) => message::deadline_exceeded(noun),
        _ => unexplained(),
    };
    Conclusion::new(Stage::Failed, reason, message)
}

fn fault(notes: &Notes) -> Option<Conclusion> {
    let fault = notes.critical()?;
    Some(Conclusion::new(Stage::Failed, fault.reason.clone(), fault.message.clone()))
}

fn scheduling(pod: &ObservedPod, noun: &str) -> Option<Conclusion> {
    if pod.has_node {
        return None;
    }
    let reason = pod.condition_reason(ConditionKind::PodScheduled, "False").unwrap_or("Scheduling");
    let message = if Reason::known(reason) == Some(Reason::Unschedulable) {
        let condition = pod.condition(ConditionKind::PodScheduled);
        message::unschedulable(
            noun,
            condition.and_then(|condition| condition.message.as_deref()).unwrap_or_default(),
        )
    } else {
        format!("Looking for a machine for your {noun}.")
    };
    Some(Conclusion::new(Stage::Scheduling, reason, message))
}

fn pulling(
    pod: &ObservedPod,
    events: &[EventView<'_>],
    policy: &StagePolicy,
    notes: &mut Notes,
) -> Option<Conclusion> {
    let waiting = pod.containers.iter().filter(|container| !container.is_running() && !container.is_done());
    // All downloads are examined, because each can set the earliest moment for the next analysis.
    let late: Vec<&Container> = waiting
        .filter(|container| {
            let pulls = Pulls::from_events(&container.name, events);
            pulls.is_open() && notes.has_passed(policy.pulling_delay, pulls.last_begun)
        })
        .collect();
    let container = late.first()?;
    let message = format!("Downloading the image {}. This may take some minutes.", container.image);
    Some(Conclusion::new(Stage::Pulling, Reason::Pulling, message))
}

fn initializing(pod: &ObservedPod, noun: &str) -> Option<Conclusion> {
    // Once a main container has run, the init containers are complete, even if a sidecar restarts or fails later.
    if pod.main_containers().any(Container::has_run) {
        return None;
    }
    let step = pod.init_containers().find(|container| !container.is_done())?;
    Some(Conclusion::new(
        Stage::Initializing,
        Reason::PodInitializing,
        format!("Preparing your {noun}: {}.", step.name),
    ))
}

fn starting(pod: &ObservedPod, noun: &str) -> Option<Conclusion> {
    if pod.condition_is(ConditionKind::Ready, "True") {
        return None;
    }
    let waiting = pod.main_containers().filter_map(Container::waiting);
    let waiting = waiting.map(|waiting| waiting.reason.as_str()).find(|reason| !reason.is_empty());
    let unready = pod.condition_reason(ConditionKind::Ready, "False");
    let reason = waiting.or(unready).unwrap_or("ContainersNotReady");
    let message = if pod.main_containers().any(Container::is_running) {
        format!("Your {noun} has started and is getting ready.")
    } else {
        format!("Starting your {noun}.")
    };
    Some(Conclusion::new(Stage::Starting, reason, message))
}
