//! From what the watches see to the lab it is about.

use k8s_openapi::api::core::v1::{Namespace, Pod};
use tokio::sync::mpsc;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::lifecycle::Presence;
use wasmspawner_core::manifest;

use super::labs::Labs;
use super::message::Seen;
use super::world::presence;
use crate::k8s::Change;

/// Passes on what the watches see, until they end.
pub(super) async fn dispatch(labs: Labs, mut changes: mpsc::UnboundedReceiver<Change>) {
    while let Some(change) = changes.recv().await {
        match change {
            Change::Pod(pod) => show_pod(&labs, *pod, |pod| Seen::Pod(Box::new(pod))),
            Change::PodGone(pod) => show_pod(&labs, *pod, |pod| Seen::PodGone(pod.metadata.uid)),
            Change::Namespace(namespace) => {
                let seen = presence(namespace.metadata.deletion_timestamp.is_some());
                show_namespace(&labs, &namespace, seen);
            }
            Change::NamespaceGone(namespace) => show_namespace(&labs, &namespace, Presence::Missing),
            Change::Event(event) => {
                for key in labs.residents(event.involved_object.namespace.as_deref().unwrap_or_default()) {
                    labs.show(&key, Seen::Event(event.clone()));
                }
            }
        }
    }
}

fn show_pod(labs: &Labs, pod: Pod, seen: impl Fn(Pod) -> Seen) {
    match manifest::lab_key(&pod.metadata) {
        Some(key) => labs.show(&key, seen(pod)),
        None => {
            tracing::warn!(pod = ?pod.metadata.name, "a pod with this service's label does not say whose lab it is");
        }
    }
}

/// Where namespaces stay, their coming and going says nothing about a lab.
fn show_namespace(labs: &Labs, namespace: &Namespace, seen: Presence) {
    if labs.site().config.kubernetes.namespaces == NamespaceReclaim::Delete
        && let Some(name) = namespace.metadata.name.as_deref()
    {
        for key in labs.residents(name) {
            labs.show(&key, Seen::Rest(seen));
        }
    }
}
