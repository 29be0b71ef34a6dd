//! What is kept of an event: what a lab's stage is read from. A busy cluster has tens of thousands of them.

use k8s_openapi::api::core::v1::Event;

/// An event without what no stage is read from.
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
