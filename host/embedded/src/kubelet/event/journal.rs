//! One pod's events on their way to the API: in order, and repeats as a count.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Event, ObjectReference};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::sync::mpsc;

use super::Happening;
use crate::kubelet::clock::Clock;

/// Where a pod's task says what happens. Never blocks.
#[derive(Debug)]
pub(crate) struct Journal(mpsc::UnboundedSender<Happening>);

impl Journal {
    pub(crate) fn open() -> (Self, mpsc::UnboundedReceiver<Happening>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    pub(crate) fn write(&self, happening: Happening) {
        // The reader only goes away together with the pod.
        let _ = self.0.send(happening);
    }
}

/// Writes events until the journal is closed. Events inform: one that cannot be written is logged and dropped.
pub(crate) async fn record(
    client: Client,
    about: ObjectReference,
    node: &str,
    clock: Clock,
    mut journal: mpsc::UnboundedReceiver<Happening>,
) {
    let api: Api<Event> = Api::namespaced(client, about.namespace.as_deref().unwrap_or("default"));
    let mut written: HashMap<Happening, (String, i32)> = HashMap::new();
    let mut number = 0;
    while let Some(happening) = journal.recv().await {
        let now = clock.now();
        if let Some((name, count)) = written.get_mut(&happening) {
            *count += 1;
            let patch = if happening.event(&about, node, 0, now).event_time.is_some() {
                json!({"series": {"count": count, "lastObservedTime": micro(now)}})
            } else {
                json!({"count": count, "lastTimestamp": k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now)})
            };
            if api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.is_ok() {
                continue;
            }
        }
        number += 1;
        let event = happening.event(&about, node, number, now);
        match api.create(&PostParams::default(), &event).await {
            Ok(created) => {
                written.insert(happening, (created.metadata.name.unwrap_or_default(), 1));
            }
            Err(error) => {
                tracing::debug!(reason = happening.reason, %error, "an event was not written");
            }
        }
    }
}

fn micro(now: jiff::Timestamp) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime {
    k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(now)
}
