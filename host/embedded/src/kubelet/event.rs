//! Events about pods: the objects that a kubelet and a scheduler write, and the task that writes them to the API.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EventDraft {
    component: &'static str,
    kind: &'static str,
    reason: String,
    message: String,
    /// `spec.containers{notebook}` for events of one container.
    field: Option<String>,
}

impl EventDraft {
    pub(crate) fn normal(reason: &str, message: impl Into<String>) -> Self {
        let (reason, message) = (reason.to_owned(), message.into());
        Self { component: "kubelet", kind: "Normal", reason, message, field: None }
    }

    pub(crate) fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self { kind: "Warning", ..Self::normal(reason, message) }
    }

    pub(crate) fn by_scheduler(self) -> Self {
        Self { component: "default-scheduler", ..self }
    }

    pub(crate) fn of_container(self, name: &str, init: bool) -> Self {
        let list = if init { "initContainers" } else { "containers" };
        Self { field: Some(format!("spec.{list}{{{name}}}")), ..self }
    }

    /// Creates the event object of the first occurrence, in the form that kubelets write, with counts and timestamps.
    fn event(&self, about: &ObjectReference, node: &str, number: u64, now: Timestamp) -> Event {
        let name: String = about.name.as_deref().unwrap_or_default().chars().take(220).collect();
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}{number:02x}", now.as_nanosecond())),
                namespace: about.namespace.clone(),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference { field_path: self.field.clone(), ..about.clone() },
            type_: Some(self.kind.to_owned()),
            reason: Some(self.reason.clone()),
            message: Some(self.message.chars().take(1024).collect()),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            count: Some(1),
            source: Some(EventSource {
                component: Some(self.component.to_owned()),
                host: Some(node.to_owned()),
            }),
            ..Event::default()
        }
    }
}

/// Returns the reference by which events name a pod.
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

/// Writes events until all senders are dropped. Repeated events are counted. An event that cannot be written is logged
/// and dropped.
pub(crate) async fn write_events(
    client: Client,
    about: ObjectReference,
    node: &str,
    mut drafts: UnboundedReceiver<EventDraft>,
) {
    let api: Api<Event> = Api::namespaced(client, about.namespace.as_deref().unwrap_or("default"));
    let mut written: HashMap<EventDraft, (String, i32)> = HashMap::new();
    let mut number = 0;
    while let Some(draft) = drafts.recv().await {
        let now = Timestamp::now();
        if let Some((name, count)) = written.get_mut(&draft) {
            *count += 1;
            let patch = json!({"count": count, "lastTimestamp": Time(now)});
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
            Err(error) => tracing::debug!(reason = draft.reason, %error, "an event was not written"),
        }
    }
}
