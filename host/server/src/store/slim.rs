//! Reduces events to the fields from which the stage of a lab is read. A busy cluster has tens of thousands of events.

use k8s_openapi::api::core::v1::Event;

/// The event without the fields from which no stage is read.
pub(super) fn event(event: Event) -> Event {
    let mut metadata = event.metadata;
    metadata.managed_fields = None;
    metadata.annotations = None;
    metadata.labels = None;
    Event {
        metadata,
        reporting_component: None,
        reporting_instance: None,
        related: None,
        action: None,
        ..event
    }
}
