//! Reduces events to the fields from which the stage of a lab is read. A busy cluster has tens of thousands of events.

use k8s_openapi::api::core::v1::Event;

/// The length in bytes to which the texts of an event are cut. Kubernetes' own programs write messages of at most 1,024
/// bytes.
const MAX_MESSAGE_BYTES: usize = 1_024;

/// Removes the fields of an event that are not needed for a stage. Anybody who may write events controls their texts.
pub fn event(event: Event) -> Event {
    let mut metadata = event.metadata;
    metadata.managed_fields = None;
    metadata.annotations = None;
    metadata.labels = None;
    let short = |text: String| text[..text.floor_char_boundary(MAX_MESSAGE_BYTES)].to_owned();
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
