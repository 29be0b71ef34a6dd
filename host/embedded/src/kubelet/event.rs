//! Events about pods: the objects that a kubelet and a scheduler write, and their way to the API.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::sync::mpsc;

use super::clock::Clock;

/// Who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reporter {
    Kubelet,
    Scheduler,
}

impl Reporter {
    fn component(self) -> &'static str {
        match self {
            Self::Kubelet => "kubelet",
            Self::Scheduler => "default-scheduler",
        }
    }
}

/// Something worth an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EventDraft {
    pub(crate) reporter: Reporter,
    pub(crate) warning: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// `spec.containers{notebook}` for events of one container.
    pub(crate) field: Option<String>,
}

impl EventDraft {
    pub(crate) fn normal(reason: &str, message: impl Into<String>) -> Self {
        Self {
            reporter: Reporter::Kubelet,
            warning: false,
            reason: reason.to_owned(),
            message: message.into(),
            field: None,
        }
    }

    pub(crate) fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::normal(reason, message) }
    }

    pub(crate) fn by(self, reporter: Reporter) -> Self {
        Self { reporter, ..self }
    }

    pub(crate) fn of_field(self, field: &str) -> Self {
        Self { field: Some(field.to_owned()), ..self }
    }

    /// The event object of its first occurrence.
    pub(crate) fn event(&self, about: &ObjectReference, node: &str, number: u64, now: Timestamp) -> Event {
        let about = ObjectReference { field_path: self.field.clone(), ..about.clone() };
        let name = about.name.as_deref().unwrap_or_default();
        let name: String = name.chars().take(220).collect();
        // The scheduler writes the newer form: an eventTime, and no first and last timestamps.
        let newer = self.reporter == Reporter::Scheduler;
        let older = || (!newer).then_some(Time(now));
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}{number:02x}", now.as_nanosecond())),
                namespace: about.namespace.clone(),
                ..ObjectMeta::default()
            },
            involved_object: about,
            type_: Some(if self.warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some(self.reason.clone()),
            message: Some(self.message.chars().take(1024).collect()),
            first_timestamp: older(),
            last_timestamp: older(),
            count: (!newer).then_some(1),
            event_time: newer.then_some(MicroTime(now)),
            action: newer.then(|| if self.warning { "Scheduling" } else { "Binding" }.to_owned()),
            source: (!newer).then(|| EventSource {
                component: Some(self.reporter.component().to_owned()),
                host: (self.reporter == Reporter::Kubelet).then(|| node.to_owned()),
            }),
            reporting_component: Some(self.reporter.component().to_owned()),
            reporting_instance: Some(node.to_owned()),
            ..Event::default()
        }
    }
}

/// How events name a pod.
pub(crate) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// How events name a container of a pod.
pub(crate) fn container_field(container: &str, init: bool) -> String {
    let list = if init { "initContainers" } else { "containers" };
    format!("spec.{list}{{{container}}}")
}

/// Where a pod's task says what happens. Never blocks.
#[derive(Debug)]
pub(crate) struct Journal(mpsc::UnboundedSender<EventDraft>);

impl Journal {
    pub(crate) fn open() -> (Self, mpsc::UnboundedReceiver<EventDraft>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    pub(crate) fn write(&self, draft: EventDraft) {
        // The reader only goes away together with the pod.
        let _ = self.0.send(draft);
    }
}

/// Writes events until the journal is closed. Events inform: one that cannot be written is logged and dropped.
pub(crate) async fn record(
    client: Client,
    about: ObjectReference,
    node: &str,
    clock: Clock,
    mut journal: mpsc::UnboundedReceiver<EventDraft>,
) {
    let api: Api<Event> = Api::namespaced(client, about.namespace.as_deref().unwrap_or("default"));
    let mut written: HashMap<EventDraft, (String, i32)> = HashMap::new();
    let mut number = 0;
    while let Some(draft) = journal.recv().await {
        let now = clock.now();
        if let Some((name, count)) = written.get_mut(&draft) {
            *count += 1;
            let patch = if draft.event(&about, node, 0, now).event_time.is_some() {
                json!({"series": {"count": count, "lastObservedTime": MicroTime(now)}})
            } else {
                json!({"count": count, "lastTimestamp": Time(now)})
            };
            if api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.is_ok() {
                continue;
            }
        }
        number += 1;
        let event = draft.event(&about, node, number, now);
        match api.create(&PostParams::default(), &event).await {
            Ok(created) => {
                written.insert(draft, (created.metadata.name.unwrap_or_default(), 1));
            }
            Err(error) => {
                tracing::debug!(reason = draft.reason, %error, "an event was not written");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_writes_the_newer_form() {
        let about = ObjectReference { name: Some("nb".to_owned()), ..ObjectReference::default() };
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let started = EventDraft::normal("Started", "Started container notebook")
            .of_field(&container_field("notebook", false))
            .event(&about, "node", 1, now);
        assert_eq!(started.involved_object.field_path.as_deref(), Some("spec.containers{notebook}"));
        assert_eq!((started.count, started.event_time), (Some(1), None));
        let refused = EventDraft::warning("FailedScheduling", "no").by(Reporter::Scheduler);
        let refused = refused.event(&about, "node", 2, now);
        assert_eq!((refused.count, refused.first_timestamp, refused.last_timestamp), (None, None, None));
        assert!(refused.event_time.is_some());
    }
}
