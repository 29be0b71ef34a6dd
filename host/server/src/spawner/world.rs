//! What the watches have shown of one lab.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use wasmspawner_core::lifecycle::{Observation, Presence};
use wasmspawner_core::stage::{self, StagePolicy};

/// Most events kept of one lab; Kubernetes folds repeats, so a lab rarely has twenty.
const MOST_EVENTS: usize = 200;

/// What the watches have shown of one lab, and what our own requests were answered with.
#[derive(Debug, Default)]
pub(super) struct World {
    pod: Option<Box<Pod>>,
    /// A creation ended without telling whether there is a pod: there may be one that no watch has shown yet.
    pod_unseen: bool,
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
            self.pod_unseen = false;
        }
    }

    /// A creation was answered with this pod. The watch may have shown something newer of it already.
    pub(super) fn created(&mut self, pod: Box<Pod>) {
        self.rest = Presence::Present;
        if self.pod().is_none_or(|known| known.metadata.uid != pod.metadata.uid) {
            self.see_pod(pod);
        }
    }

    /// A creation failed or was cancelled: what it made is only found by deleting it.
    pub(super) fn may_have_created(&mut self) {
        self.pod_unseen = self.pod.is_none();
        if self.rest.is_missing() {
            self.rest = Presence::Present;
        }
    }

    /// The pod is gone; without a uid, whatever pod there was.
    pub(super) fn lose_pod(&mut self, uid: Option<&str>) {
        if uid.is_none() || self.pod.as_ref().is_some_and(|known| known.metadata.uid.as_deref() == uid) {
            self.pod = None;
        }
        self.pod_unseen = false;
    }

    /// The namespace, or what else a lab has besides its pod, is as given.
    pub(super) fn see_rest(&mut self, rest: Presence) {
        self.rest = rest;
    }

    /// Something was said about the lab.
    pub(super) fn see_event(&mut self, event: Event) {
        self.events.insert(event.metadata.uid.clone().unwrap_or_default(), event);
        if self.events.len() > MOST_EVENTS {
            let oldest =
                self.events.iter().min_by_key(|(_, event)| event.metadata.creation_timestamp.clone());
            if let Some(uid) = oldest.map(|(uid, _)| uid.clone()) {
                self.events.remove(&uid);
            }
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
            pod: match &self.pod {
                Some(pod) => presence(pod.metadata.deletion_timestamp.is_some()),
                None if self.pod_unseen => Presence::Present,
                None => Presence::Missing,
            },
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

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn pod(uid: &str, created: i64, phase: &str) -> Box<Pod> {
        let mut pod = Pod::default();
        pod.metadata.uid = Some(uid.to_owned());
        pod.metadata.creation_timestamp = Timestamp::from_second(created).ok().map(Time);
        pod.status.get_or_insert_default().phase = Some(phase.to_owned());
        Box::new(pod)
    }

    fn phase(world: &World) -> Option<&str> {
        world.pod()?.status.as_ref()?.phase.as_deref()
    }

    #[test]
    fn the_answer_of_a_creation_does_not_undo_what_the_watch_has_shown() {
        let mut world = World::default();
        world.see_pod(pod("a", 1, "Running"));
        world.created(pod("a", 1, "Pending"));
        assert_eq!(phase(&world), Some("Running"));
        world.created(pod("b", 2, "Pending"));
        assert_eq!(phase(&world), Some("Pending"));
    }

    #[test]
    fn late_word_of_an_earlier_pod_says_nothing_about_this_one() {
        let mut world = World::default();
        world.see_pod(pod("b", 2, "Running"));
        world.see_pod(pod("a", 1, "Failed"));
        world.lose_pod(Some("a"));
        assert_eq!(phase(&world), Some("Running"));
    }

    #[test]
    fn what_a_failed_creation_may_have_made_is_there_until_a_deletion_finds_nothing() {
        let mut world = World::default();
        world.may_have_created();
        let seen = world.observe(&StagePolicy::default(), Timestamp::UNIX_EPOCH);
        assert_eq!((seen.pod, seen.rest), (Presence::Present, Presence::Present));
        world.lose_pod(None);
        assert_eq!(world.observe(&StagePolicy::default(), Timestamp::UNIX_EPOCH).pod, Presence::Missing);
    }

    #[test]
    fn of_many_events_the_newest_are_kept() {
        let mut world = World::default();
        for number in 0..300 {
            let mut event = Event::default();
            event.metadata.uid = Some(format!("{:03}", 299 - number));
            event.metadata.creation_timestamp = Timestamp::from_second(number).ok().map(Time);
            world.see_event(event);
        }
        assert_eq!(world.events.len(), MOST_EVENTS);
        assert!(world.events.contains_key("000") && !world.events.contains_key("299"));
    }
}
