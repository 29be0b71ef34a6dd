//! Findings from events. An event outlives its cause, so a problem that has passed is reported as information.

use super::container::Container;
use super::event::{EventSubject, EventView};
use super::notes::Notes;
use super::pod::{ConditionKind, ObservedPod};
use super::reason::Reason;
use super::{Finding, Severity, StagePolicy, message};

/// Adds a finding for every event about the pod and its volume claims.
pub(super) fn note(pod: &ObservedPod, events: &[EventView<'_>], policy: &StagePolicy, notes: &mut Notes) {
    for event in events {
        if let Some((severity, message)) = reading(pod, event, policy, notes) {
            let (reason, count, source) = (event.reason.to_owned(), event.count, event.source());
            notes.add(event.last, Finding { severity, reason, message, count, source });
        }
    }
}

/// Returns severity and message of an event; `None` if it is too early to report it.
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
    Some(match (event.about, event.known) {
        // The claims of a pod that has a node are bound, so this event is out of date.
        (EventSubject::Claim(claim), Some(Reason::FailedBinding)) => {
            let severity = if bound { Severity::Info } else { Severity::Critical };
            (severity, message::volume_unbound(claim, event.message))
        }
        (EventSubject::Claim(claim), Some(Reason::ProvisioningFailed)) => {
            (warn_unless(bound), message::volume_late(claim, event.message))
        }
        (_, Some(Reason::FailedScheduling)) => (
            warn_unless(bound || message::waits_for_volume(event.message)),
            message::unschedulable(policy.noun(), event.message),
        ),
        (_, Some(Reason::FailedMount | Reason::FailedAttachVolume)) => {
            if !started && !notes.has_passed(policy.mount_grace, event.first) {
                return None;
            }
            (warn_unless(started), message::mount_late(event.message))
        }
        // Failing probes are normal while a lab starts.
        (_, Some(Reason::Unhealthy)) if !notes.has_passed(policy.unhealthy_grace, event.first) => {
            return None;
        }
        (_, Some(Reason::Unhealthy)) => {
            (warn_unless(ready), message::unhealthy(policy.noun(), event.message))
        }
        (_, Some(Reason::NodeNotReady)) => (warn_unless(ready), message::node_not_ready(policy.noun())),
        // The same problem is reported from the container's state.
        (
            EventSubject::Container(name),
            Some(Reason::Failed | Reason::BackOff | Reason::InspectFailed | Reason::ErrImageNeverPull),
        ) => {
            let over =
                ready || pod.container(name).is_some_and(|container| notes.has_fault_of(&container.name));
            (warn_unless(over || started), event.message.to_owned())
        }
        (
            _,
            Some(
                Reason::Failed
                | Reason::BackOff
                | Reason::FailedCreatePodSandBox
                | Reason::Evicted
                | Reason::Preempted
                | Reason::TaintManagerEviction,
            ),
        ) => (warn_unless(ready), event.message.to_owned()),
        _ => (Severity::Info, event.message.to_owned()),
    })
}
