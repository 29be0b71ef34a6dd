//! An event of Kubernetes, in the form that the analysis uses.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;

use super::pod::ObservedPod;
use super::reason::Reason;

/// Events about a volume claim that precede the pod by more than this belong to an earlier lab. Claims are created
/// shortly before the pod, and event times are whole seconds.
const CLAIM_LEAD: SignedDuration = SignedDuration::from_secs(30);

/// One event, with its count and times read from the fields that are set.
pub(super) struct EventView<'a> {
    /// The reason as Kubernetes wrote it.
    pub(super) reason: &'a str,
    /// The reason, if the analysis knows it.
    pub(super) known: Option<Reason>,
    pub(super) message: &'a str,
    /// The object of the event.
    pub(super) about: EventSubject<'a>,
    /// The number of times that the event was seen; at least 1.
    pub(super) count: u32,
    /// The time at which the event was first seen.
    pub(super) first: Option<Timestamp>,
    /// The time at which the event was last seen.
    pub(super) last: Option<Timestamp>,
}

/// The object of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventSubject<'a> {
    Pod,
    Container(&'a str),
    Claim(&'a str),
}

/// Returns the events about this pod and the claims it mounts, oldest first. Events of an earlier pod of the same name
/// have another uid and are ignored.
pub(super) fn about<'a>(pod: &ObservedPod, events: &'a [Event]) -> Vec<EventView<'a>> {
    let mut views: Vec<_> = events.iter().filter_map(|event| EventView::new(pod, event)).collect();
    views.sort_by_key(|event| event.last);
    views
}

impl<'a> EventView<'a> {
    fn new(pod: &ObservedPod, event: &'a Event) -> Option<Self> {
        let object = &event.involved_object;
        let reason = event.reason.as_deref().filter(|reason| !reason.is_empty())?;
        let message = event.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
        let last = last_seen(event);
        let about = match object.kind.as_deref()? {
            "Pod" => {
                if pod.uid.as_ref().is_some_and(|uid| object.uid.as_ref().is_some_and(|theirs| theirs != uid))
                    || object.name.as_ref().is_some_and(|name| !pod.name.is_empty() && *name != pod.name)
                {
                    return None;
                }
                object
                    .field_path
                    .as_deref()
                    .and_then(container_in)
                    .map_or(EventSubject::Pod, EventSubject::Container)
            }
            "PersistentVolumeClaim" => {
                let claim = object
                    .name
                    .as_deref()
                    .filter(|claim| pod.claims.iter().any(|mounted| mounted == claim))?;
                let stale = matches!((last, pod.created), (Some(last), Some(created)) if last.duration_until(created) > CLAIM_LEAD);
                (!stale).then_some(EventSubject::Claim(claim))?
            }
            _ => return None,
        };
        let series = event.series.as_ref().and_then(|series| series.count);
        Some(Self {
            reason,
            known: Reason::known(reason),
            message: message.unwrap_or(reason),
            about,
            count: series.max(event.count).and_then(|count| u32::try_from(count).ok()).unwrap_or(1).max(1),
            first: first_seen(event).or(last),
            last,
        })
    }

    /// Returns the object of the event, in the form that a [`Finding`](super::Finding) has.
    pub(super) fn source(&self) -> String {
        match self.about {
            EventSubject::Pod => "pod".to_owned(),
            EventSubject::Container(name) => format!("container/{name}"),
            EventSubject::Claim(name) => format!("PersistentVolumeClaim/{name}"),
        }
    }
}

/// Returns the container in a field path such as `spec.containers{notebook}` or `spec.initContainers{prepare}`.
fn container_in(field_path: &str) -> Option<&str> {
    let (group, rest) = field_path.split_once('{')?;
    matches!(group, "spec.containers" | "spec.initContainers").then(|| rest.strip_suffix('}')).flatten()
}

/// Returns the time at which the event was last seen. Events of the scheduler may have no `lastTimestamp`, and events
/// of a series have their time in another field.
fn last_seen(event: &Event) -> Option<Timestamp> {
    let series =
        event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
    series
        .or_else(|| event.last_timestamp.as_ref().map(|time| time.0))
        .or_else(|| event.event_time.as_ref().map(|time| time.0))
        .or_else(|| event.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

fn first_seen(event: &Event) -> Option<Timestamp> {
    let first = event.first_timestamp.as_ref().map(|time| time.0);
    first
        .or_else(|| event.event_time.as_ref().map(|time| time.0))
        .or_else(|| event.metadata.creation_timestamp.as_ref().map(|time| time.0))
}
