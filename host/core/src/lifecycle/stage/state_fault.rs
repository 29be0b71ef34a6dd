//! Faults that are read from a container's state. Most of them have no event of the same name.

use jiff::Timestamp;

use super::container::{Container, End, Role};
use super::event::{EventSubject, EventView};
use super::message::Ending;
use super::notes::Notes;
use super::pod::ObservedPod;
use super::pull::{Pulls, is_pull_failure};
use super::pull_cause::PullCause;
use super::reason::Reason;
use super::{Finding, Severity, StagePolicy, message};

/// Adds at most one finding for each container.
pub(super) fn note(pod: &ObservedPod, events: &[EventView<'_>], policy: &StagePolicy, notes: &mut Notes) {
    for container in &pod.containers {
        let fault = image_fault(pod, container, events, policy, notes)
            .or_else(|| create_fault(pod, container, events, policy, notes))
            .or_else(|| run_fault(pod, container, policy));
        if let Some(Fault { severity, reason, message }) = fault {
            let severity = if policy.was_ready && !ended_for_good(pod, container) {
                severity.min(Severity::Warning)
            } else {
                severity
            };
            let source = format!("container/{}", container.name);
            notes.add(None, Finding { severity, reason: reason.into(), message, count: 1, source });
        }
    }
}

struct Fault {
    severity: Severity,
    reason: Reason,
    message: String,
}

impl Fault {
    fn critical(reason: Reason, message: String) -> Self {
        Self { severity: Severity::Critical, reason, message }
    }

    fn warning(reason: Reason, message: String) -> Self {
        Self { severity: Severity::Warning, reason, message }
    }
}

/// Returns a fault of the image: its name is invalid, or its download fails. A failure that may pass by itself is waited for:
/// the kubelet tries again, after pauses of up to five minutes.
fn image_fault(
    pod: &ObservedPod,
    container: &Container,
    events: &[EventView<'_>],
    policy: &StagePolicy,
    notes: &mut Notes,
) -> Option<Fault> {
    let image = container.image.as_str();
    let detail = container.waiting().and_then(|waiting| waiting.message.as_deref());
    let pulls = Pulls::from_events(&container.name, events);
    let reason = match container.waiting_reason() {
        Some(Reason::InvalidImageName) => {
            return Some(Fault::critical(Reason::InvalidImageName, message::invalid_image(image)));
        }
        Some(Reason::ErrImageNeverPull) => {
            return Some(Fault::critical(Reason::ErrImageNeverPull, message::image_never_pulled(image)));
        }
        Some(
            reason @ (Reason::ErrImagePull
            | Reason::ImagePullBackOff
            | Reason::ImageInspectError
            | Reason::RegistryUnavailable
            | Reason::SignatureValidationFailed),
        ) => reason,
        // The event of a failed download comes a moment before the container's state changes.
        _ if !container.has_run() && pulls.has_only_failed() => Reason::ErrImagePull,
        _ => return None,
    };
    let detail = message::pull_error(pulls.failure.or(detail).unwrap_or_default());
    let cause = PullCause::from_message(detail, image);
    let since = pulls.first_failure.or(pulls.last_begun).or_else(|| pod.began_at());
    let waits = cause.may_pass() && !notes.has_passed(policy.image_pull_patience, since);
    let again = waits || pulls.failed.max(1) < policy.image_pull_failures;
    let message = message::image_pull(image, cause, again, detail);
    Some(if again { Fault::warning(reason, message) } else { Fault::critical(reason, message) })
}

/// Returns a fault of the container's creation: an object that the container refers to is missing, or the runtime
/// refuses it.
fn create_fault(
    pod: &ObservedPod,
    container: &Container,
    events: &[EventView<'_>],
    policy: &StagePolicy,
    notes: &mut Notes,
) -> Option<Fault> {
    let reason = container.waiting_reason().filter(|reason| {
        use Reason::{CreateContainerConfigError, CreateContainerError, RunContainerError};
        matches!(reason, CreateContainerConfigError | CreateContainerError | RunContainerError)
    })?;
    let detail = container.waiting().and_then(|waiting| waiting.message.as_deref()).unwrap_or_default();
    let message = message::config_error(policy.noun(), detail);
    let since = failing_since(&container.name, events).or_else(|| pod.began_at());
    let patience_is_over = notes.has_passed(policy.config_error_grace, since);
    Some(if patience_is_over { Fault::critical(reason, message) } else { Fault::warning(reason, message) })
}

/// Returns the time at which the fault began. A waiting state has no time; the time of the fault's first event, or of
/// the image's arrival, is used.
fn failing_since(container: &str, events: &[EventView<'_>]) -> Option<Timestamp> {
    let failed = |event: &&EventView<'_>| {
        event.about == EventSubject::Container(container)
            && event.known == Some(Reason::Failed)
            && !is_pull_failure(event.message)
    };
    let first = events.iter().filter(failed).filter_map(|event| event.first).min();
    first.or_else(|| Pulls::from_events(container, events).last_success)
}

/// Returns the fault of a container that ran and ended with an error.
fn run_fault(pod: &ObservedPod, container: &Container, policy: &StagePolicy) -> Option<Fault> {
    if container.is_done() {
        return None;
    }
    let what = called(container, policy.noun());
    let restarts = container.restarts();
    let end = container.last_end();
    if end.is_some_and(ran_out_of_memory) {
        return Some(Fault::critical(Reason::OOMKilled, message::out_of_memory(&what)));
    }
    let ending = ending(end);
    if policy.was_ready && restarts > 0 && !ended_for_good(pod, container) {
        return Some(Fault::warning(Reason::CrashLoopBackOff, message::stopping(&what, &ending)));
    }
    if restarts > policy.restarts {
        return Some(Fault::critical(
            Reason::CrashLoopBackOff,
            message::crash_loop(&what, restarts, &ending),
        ));
    }
    if ended_for_good(pod, container) {
        let reason =
            if container.role == Role::Main { Reason::ContainerFailed } else { Reason::InitContainerFailed };
        return Some(Fault::critical(reason, message::ended_badly(&what, &ending)));
    }
    let ended_badly = container.ended().is_some_and(|end| end.exit_code != 0);
    if restarts > 0 {
        Some(Fault::warning(
            Reason::CrashLoopBackOff,
            message::restarted(&what, restarts, policy.restarts, &ending),
        ))
    } else if ended_badly || container.waiting_reason() == Some(Reason::CrashLoopBackOff) {
        Some(Fault::warning(Reason::CrashLoopBackOff, message::stopping(&what, &ending)))
    } else {
        None
    }
}

/// Returns true if a container failed and is not restarted.
fn ended_for_good(pod: &ObservedPod, container: &Container) -> bool {
    let stays_down = pod.restarts_never || pod.phase == "Failed";
    stays_down && container.ended().is_some_and(|end| end.exit_code != 0)
}

/// Returns the end of the main container that was restarted most often, in a sentence.
pub(super) fn last_end(pod: &ObservedPod, noun: &str) -> Option<String> {
    let restarted = pod.main_containers().filter(|container| container.restarts() > 0);
    let container = restarted.max_by_key(|container| container.restarts())?;
    let (what, end) = (called(container, noun), container.last_end());
    Some(if end.is_some_and(ran_out_of_memory) {
        message::out_of_memory_and_restarted(&what)
    } else {
        message::stopping(&what, &ending(end))
    })
}

fn ran_out_of_memory(end: &End) -> bool {
    end.reason == Some(Reason::OOMKilled)
}

fn ending(end: Option<&End>) -> Ending {
    let how = match end {
        Some(end) if end.signal.unwrap_or(0) != 0 => format!("signal {}", end.signal.unwrap_or(0)),
        Some(end) => format!("exit code {}", end.exit_code),
        None => "the cluster does not say how".to_owned(),
    };
    Ending { how, last_words: end.and_then(|end| end.last_words.clone()) }
}

/// Returns the name of the container in messages for the user.
fn called(container: &Container, noun: &str) -> String {
    match container.role {
        Role::Main if ["notebook", "kernel"].contains(&container.name.as_str()) => format!("Your {noun}"),
        Role::Main | Role::Sidecar => format!("Your {noun}'s part {:?}", container.name),
        Role::Init => format!("The preparation step {:?}", container.name),
    }
}
