//! What is known of a lab's place in the cluster.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::lab::JobId;
use wasmspawner_core::lifecycle::{Observed, Presence};
use wasmspawner_core::record::Place;
use wasmspawner_core::stage::{self, ObservedPod, StagePolicy};

use crate::store::{Claim, Follower, NamespaceState, Store};

/// What is known of a lab's place: what the watches show, and what our own requests were answered with.
pub(super) struct PlaceObserver {
    follower: Follower,
    reclaim: NamespaceReclaim,
    /// The uid of the lab's record: what does not carry it is not the lab's.
    spawn: String,
    /// Places where an earlier lab left something.
    remains: Vec<Place>,
    /// They were asked to go.
    remains_asked: bool,
    /// A creation was begun, and nobody has looked since: there may be a pod that no watch has shown yet.
    pod_unknown: bool,
    /// The same of everything else. In a namespace that stays nothing else tells whether objects are left.
    rest_unknown: bool,
}

impl PlaceObserver {
    /// A place of which only what the watches show is known.
    pub(super) fn new(store: &Store, place: Place, spawn: String, reclaim: NamespaceReclaim) -> Self {
        Self {
            follower: store.follow(place),
            reclaim,
            spawn,
            remains: Vec::new(),
            remains_asked: false,
            pod_unknown: false,
            rest_unknown: false,
        }
    }

    /// Places where an earlier lab left something.
    pub(super) fn remains(&self) -> &[Place] {
        &self.remains
    }

    /// An earlier lab left something there.
    pub(super) fn set_remains(&mut self, remains: Vec<Place>) {
        (self.remains, self.remains_asked) = (remains, false);
    }

    /// Everything elsewhere was asked to go; this is where something is left.
    pub(super) fn remains_asked_to_go(&mut self, left: Vec<Place>) {
        (self.remains, self.remains_asked) = (left, true);
    }

    /// Waits until something there has changed.
    pub(super) async fn changed(&self) {
        self.follower.changed().await;
    }

    pub(super) fn place(&self) -> &Place {
        self.follower.place()
    }

    pub(super) fn spawn(&self) -> &str {
        &self.spawn
    }

    /// The lab's pod.
    pub(super) fn pod(&self) -> Option<std::sync::Arc<ObservedPod>> {
        self.follower.pod().filter(|pod| pod.spawn.as_ref() == Some(&self.spawn))
    }

    /// The lab's own namespace; nothing where namespaces stay.
    pub(super) fn namespace(&self) -> Option<NamespaceState> {
        let own = |namespace: &NamespaceState| namespace.spawn.as_deref() == Some(self.spawn.as_str());
        match self.reclaim {
            NamespaceReclaim::Delete => self.follower.namespace().filter(own),
            NamespaceReclaim::Retain => None,
        }
    }

    /// A restart found this place. Of a spawn that was never ready, something may still have been on its way to the API
    /// server; and whether objects are left in a namespace that stays, nobody has seen.
    pub(super) fn recovered(&mut self, ready: bool, wanted: bool) {
        self.pod_unknown = !ready && wanted;
        self.rest_unknown = !ready || self.reclaim == NamespaceReclaim::Retain;
    }

    /// True if the pod of this operation was seen; one of an earlier spawn of the lab is not meant.
    pub(super) fn has_pod_of(&self, operation: JobId) -> bool {
        self.pod().and_then(|pod| pod.operation) == Some(operation)
    }

    /// Objects may appear from now on.
    pub(super) fn creation_begins(&mut self) {
        (self.pod_unknown, self.rest_unknown) = (true, true);
    }

    /// The creation succeeded: what it made is in the store.
    pub(super) fn created(&mut self) {
        self.pod_unknown = false;
        self.rest_unknown = self.reclaim == NamespaceReclaim::Retain;
    }

    /// The API server says that there is no pod of the lab.
    pub(super) fn pod_is_gone(&mut self) {
        self.pod_unknown = false;
    }

    /// The API server says that nothing else is left.
    pub(super) fn rest_is_gone(&mut self) {
        self.rest_unknown = false;
    }

    /// Pod and namespace were read, and the store has learned what there is.
    pub(super) fn was_read(&mut self) {
        self.pod_unknown = false;
        self.rest_unknown &= self.reclaim == NamespaceReclaim::Retain;
    }

    /// Keeps what is said about the pod and these claims from now on.
    pub(super) fn keep_events(&mut self, claims: Vec<Claim>) {
        self.follower.keep_events(claims);
    }

    /// Keeps what is said about the pod that is there and its claims from now on.
    pub(super) fn keep_events_of_pod(&mut self) {
        let claims = self.pod().map(|pod| self.claims(&pod.claims)).unwrap_or_default();
        self.keep_events(claims);
    }

    /// Follows these claims of the lab's namespace as well.
    pub(super) fn set_claims(&mut self, names: &[String]) {
        let claims = self.claims(names);
        self.follower.set_claims(claims);
    }

    /// These claims of the lab's namespace.
    fn claims(&self, names: &[String]) -> Vec<Claim> {
        names.iter().map(|name| (self.place().namespace.clone(), name.clone())).collect()
    }

    /// What is said does not matter any more.
    pub(super) fn drop_events(&mut self) {
        if self.follower.keeps_events() {
            self.follower.drop_events();
        }
    }

    /// All of it, analysed. `now` is the time of day, which the cluster's own times are compared with.
    pub(super) fn observe(&self, policy: &StagePolicy, now: Timestamp) -> Observed {
        let (pod, namespace) = (self.pod(), self.namespace());
        let events: Vec<Event> = self.follower.events().iter().map(|event| Event::clone(event)).collect();
        let presence = |deleting: Option<bool>, unknown: bool| match deleting {
            Some(deleting) => Presence::of(deleting),
            None if unknown => Presence::Present,
            None => Presence::Missing,
        };
        let rest = presence(namespace.as_ref().map(|namespace| namespace.deleting), self.rest_unknown);
        let elsewhere = match (self.remains.is_empty(), self.remains_asked) {
            (true, _) => Presence::Missing,
            (false, asked) => Presence::of(asked),
        };
        Observed {
            pod: presence(pod.as_ref().map(|pod| pod.is_deleting()), self.pod_unknown),
            pod_uid: pod.as_ref().and_then(|pod| pod.uid.clone()),
            rest: rest.max(elsewhere),
            stuck: namespace.and_then(|namespace| namespace.stuck),
            analysis: stage::analyze(pod.as_deref(), &events, policy, now),
        }
    }
}
