//! What the watches have shown of one lab.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use wasmspawner_core::lifecycle::{Observation, Presence};
use wasmspawner_core::stage::{self, StagePolicy};

/// Most events kept of one lab; Kubernetes folds repeats, so a lab rarely has twenty.
const MOST_EVENTS: usize = 200;

/// What the watches have shown of one lab, and what our own requests were answered with: those are fresher.
#[derive(Debug, Default)]
pub(super) struct World {
    pod: Option<Box<Pod>>,
    rest: Presence,
    events: BTreeMap<String, Event>,
}

impl World {
    /// The pod, as last seen.
    pub(super) fn pod(&self) -> Option<&Pod> {
        self.pod.as_deref()
    }

    /// The pod is as given. An older pod of the same name that the watch is still talking about is ignored.
    pub(super) fn see_pod(&mut self, pod: Box<Pod>) {
        let replaces = self.pod.as_ref().is_none_or(|known| {
            known.metadata.uid == pod.metadata.uid
                || known.metadata.creation_timestamp <= pod.metadata.creation_timestamp
        });
        if replaces {
            self.pod = Some(pod);
        }
    }

    /// The pod is gone; without a uid, whatever pod there was.
    pub(super) fn lose_pod(&mut self, uid: Option<&str>) {
        if uid.is_none() || self.pod.as_ref().is_some_and(|known| known.metadata.uid.as_deref() == uid) {
            self.pod = None;
        }
    }

    /// The namespace, or what else a lab has besides its pod, is as given.
    pub(super) fn see_rest(&mut self, rest: Presence) {
        self.rest = rest;
    }

    /// Something was said about the lab.
    pub(super) fn see_event(&mut self, event: Event) {
        if self.events.len() < MOST_EVENTS {
            self.events.insert(event.metadata.uid.clone().unwrap_or_default(), event);
        }
    }

    /// What was said about an earlier lab says nothing about the next.
    pub(super) fn forget_events(&mut self) {
        self.events.clear();
    }

    /// What of it would be missed in a list of the cluster.
    pub(super) fn footprint(&self, namespace: Option<&str>) -> Footprint {
        Footprint {
            pod_uid: self.pod.as_ref().and_then(|pod| pod.metadata.uid.clone()),
            namespace: namespace.filter(|_| !self.rest.is_missing()).map(str::to_owned),
        }
    }

    /// All of it, analysed.
    pub(super) fn observe(&self, policy: &StagePolicy, now: Timestamp) -> Observation {
        let events: Vec<Event> =
            self.events.values().filter(|event| self.concerns_pod(event)).cloned().collect();
        Observation {
            pod: self
                .pod
                .as_ref()
                .map_or(Presence::Missing, |pod| presence(pod.metadata.deletion_timestamp.is_some())),
            rest: self.rest,
            analysis: stage::analyze(self.pod.as_deref(), &events, policy, now),
        }
    }

    /// Not what was said about an earlier pod of the same name.
    fn concerns_pod(&self, event: &Event) -> bool {
        let about = event.involved_object.uid.as_deref();
        let is_pod = event.involved_object.kind.as_deref() == Some("Pod");
        !is_pod || about.is_none() || self.pod.as_ref().is_none_or(|pod| pod.metadata.uid.as_deref() == about)
    }
}

/// What a lab is known to have in the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Footprint {
    pub(super) pod_uid: Option<String>,
    pub(super) namespace: Option<String>,
}

/// Whether an object with or without a deletion timestamp is there to stay.
pub(super) fn presence(deleting: bool) -> Presence {
    if deleting { Presence::Terminating } else { Presence::Present }
}
