//! Reduces events to the fields from which the stage of a lab is read. A busy cluster has tens of thousands of events.

use k8s_openapi::api::core::v1::Event;

/// The longest message of an event, in bytes. That of Kubernetes' own programs has 1,024.
const LONGEST: usize = 1_024;

/// The event without the fields from which no stage is read. Anybody who may write events writes their texts.
pub fn event(event: Event) -> Event {
    let mut metadata = event.metadata;
    metadata.managed_fields = None;
    metadata.annotations = None;
    metadata.labels = None;
    let short = |text: String| text[..text.floor_char_boundary(LONGEST)].to_owned();
    Event {
        metadata,
        message: event.message.map(short),
        reason: event.reason.map(short),
        reporting_component: None,
        reporting_instance: None,
        related: None,
        action: None,
        ..event
    }
}
