//! What events tell. Trouble that is over is told as information: events outlive what they report.

use super::container::Container;
use super::event::{EventSubject, EventView};
use super::notes::Notes;
use super::pod::{ConditionKind, ObservedPod};
use super::{Finding, Severity, StagePolicy, message};

/// Notes every event about the pod and its volume claims.
pub(super) fn note(pod: &ObservedPod, events: &[EventView<'_>], policy: &StagePolicy, notes: &mut Notes) {
    for event in events {
        if let Some((severity, message)) = reading(pod, event, policy, notes) {
            let (reason, count, source) = (event.reason.to_owned(), event.count, event.source());
            notes.add(event.last, Finding { severity, reason, message, count, source });
        }
    }
}

/// How bad it is and what to say; none while it is too early to say anything.
fn reading(
    pod: &ObservedPod,
    event: &EventView<'_>,
    policy: &StagePolicy,
    notes: &mut Notes,
) -> Option<(Severity, String)> {
    let bound = pod.has_node;
    let ready = pod.condition_is(ConditionKind::Ready, "True");
    let started = pod.main_containers().any(Container::has_run);
    let warn_unless = |over: bool| if over { Severity::Info } else { Severity::Warning };
    Some(match (event.about, event.reason) {
        // A pod with a node has its claims bound: the event is an old one.
        (EventSubject::Claim(claim), "FailedBinding") => {
            let severity = if bound { Severity::Info } else { Severity::Critical };
            (severity, message::volume_unbound(claim, event.message))
        }
        (EventSubject::Claim(claim), "ProvisioningFailed") => {
            (warn_unless(bound), message::volume_late(claim, event.message))
        }
        (_, "FailedScheduling") => (warn_unless(bound), message::unschedulable(event.message)),
        (_, "FailedMount" | "FailedAttachVolume") => {
            if !started && !notes.has_passed(policy.mount_grace, event.first) {
                return None;
            }
            (warn_unless(started), message::mount_late(event.message))
        }
        // A lab that starts does not answer its first probes: that is no news.
        (_, "Unhealthy") if !notes.has_passed(policy.unhealthy_grace, event.first) => return None,
        (_, "Unhealthy") => (warn_unless(ready), message::unhealthy(event.message)),
        (_, "NodeNotReady") => (warn_unless(ready), message::node_not_ready()),
        // What the container's state says of the same fault is told instead.
        (EventSubject::Container(name), "Failed" | "BackOff" | "InspectFailed" | "ErrImageNeverPull") => {
            let over =
                ready || pod.container(name).is_some_and(|container| notes.has_fault_of(&container.name));
            (warn_unless(over || started), event.message.to_owned())
        }
        (
            _,
            "Failed"
            | "BackOff"
            | "FailedCreatePodSandBox"
            | "Evicted"
            | "Preempted"
            | "TaintManagerEviction",
        ) => (warn_unless(ready), event.message.to_owned()),
        _ => (Severity::Info, event.message.to_owned()),
    })
}
