//! Follows one place in the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Event;
use wasmspawner_core::lifecycle::stage::ObservedPod;
use wasmspawner_core::names::NamespaceName;
use wasmspawner_core::record::Place;

use super::signal::FollowerSignal;
use super::{NamespaceState, ObservedObjects};

/// A volume claim: its namespace and name.
pub type Claim = (NamespaceName, String);

/// Follows one place: its pod, its namespace, and the Kubernetes events about its pod and its volume claims.
pub struct Follower {
    store: ObservedObjects,
    place: Place,
    claims: Vec<Claim>,
    /// The uid of the record of the Dask pool whose workers are followed.
    pool: Option<String>,
    signal: Arc<FollowerSignal>,
}

impl Follower {
    pub(super) fn new(store: ObservedObjects, place: Place) -> Self {
        let signal = Arc::new(FollowerSignal::default());
        store.write().add(place.namespace.as_str(), place.pod.as_str(), &signal);
        Self { store, place, claims: Vec::new(), pool: None, signal }
    }

    /// The place that is followed.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Also follows the workers of the Dask pool whose record has this uid.
    pub fn follow_workers(&mut self, pool: &str) {
        self.drop_workers();
        self.store.write().add_workers(self.place.namespace.as_str(), pool, &self.signal);
        self.pool = Some(pool.to_owned());
    }

    fn drop_workers(&mut self) {
        if let Some(pool) = self.pool.take() {
            self.store.write().drop_workers(self.place.namespace.as_str(), &pool, &self.signal);
        }
    }

    /// The workers that are followed.
    pub fn workers(&self) -> Vec<Arc<ObservedPod>> {
        let namespace = self.place.namespace.as_str();
        self.pool.as_deref().map(|pool| self.store.workers(namespace, pool)).unwrap_or_default()
    }

    /// Waits until something at the place has changed since the last call.
    pub async fn changed(&self) {
        self.signal.woken().await;
    }

    /// The pod at the place.
    pub fn pod(&self) -> Option<Arc<ObservedPod>> {
        self.store.pod(&self.place)
    }

    /// The namespace of the place.
    pub fn namespace(&self) -> Option<NamespaceState> {
        self.store.namespace(self.place.namespace.as_str())
    }

    /// The events since [`Self::keep_events`].
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.signal.events().as_ref().map(|events| events.values().cloned().collect()).unwrap_or_default()
    }

    /// Starts to keep the events about the pod and these claims. Earlier events are dropped.
    pub fn keep_events(&mut self, claims: Vec<Claim>) {
        self.set_claims(claims);
        *self.signal.events() = Some(BTreeMap::new());
    }

    /// True while events are kept.
    pub fn keeps_events(&self) -> bool {
        self.signal.events().is_some()
    }

    /// Stops keeping events, and drops the kept ones.
    pub fn drop_events(&mut self) {
        self.set_claims(Vec::new());
        *self.signal.events() = None;
    }

    /// Sets the claims that are followed as well. Events that are kept already stay.
    pub fn set_claims(&mut self, claims: Vec<Claim>) {
        let mut index = self.store.write();
        for (namespace, name) in &self.claims {
            index.drop_claim(namespace.as_str(), name, &self.signal);
        }
        for (namespace, name) in &claims {
            index.add_claim(namespace.as_str(), name, &self.signal);
        }
        drop(index);
        self.claims = claims;
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.set_claims(Vec::new());
        self.drop_workers();
        let (namespace, pod) = (self.place.namespace.as_str(), self.place.pod.as_str());
        self.store.write().drop_follower(namespace, pod, &self.signal);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::ObjectReference;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use wasmspawner_core::config::lab::Entrance;
    use wasmspawner_core::names::ObjectName;
    use wasmspawner_core::record::PlaceKind;

    use super::*;

    fn place(namespace: &str) -> Place {
        Place {
            namespace: NamespaceName::parse(namespace).unwrap(),
            pod: ObjectName::parse("nb-ada").unwrap(),
            kind: PlaceKind::Configured,
            entrance: Entrance::Pod,
        }
    }

    fn event(kind: &str, name: &str, uid: usize) -> Event {
        let mut event = Event {
            involved_object: ObjectReference {
                kind: Some(kind.to_owned()),
                namespace: Some("labs".to_owned()),
                name: Some(name.to_owned()),
                ..ObjectReference::default()
            },
            ..Event::default()
        };
        event.metadata.uid = Some(format!("{uid:04}"));
        event.metadata.creation_timestamp =
            Timestamp::from_second(i64::try_from(uid).unwrap()).ok().map(Time);
        event
    }

    #[tokio::test]
    async fn events_reach_only_the_follower_of_their_lab() {
        let store = ObservedObjects::default();
        let mut ours = store.follow(place("labs"));
        ours.keep_events(vec![(NamespaceName::parse("labs").unwrap(), "claim-ada".to_owned())]);
        for number in 0..1000 {
            store.read().put_event(event("PersistentVolumeClaim", &format!("claim-{number}"), number));
        }
        assert!(ours.events().is_empty());
        store.read().put_event(event("PersistentVolumeClaim", "claim-ada", 1));
        store.read().put_event(event("Pod", "nb-ada", 2));
        ours.changed().await;
        assert_eq!(ours.events().len(), 2);
        ours.drop_events();
        store.read().put_event(event("Pod", "nb-ada", 3));
        assert!(ours.events().is_empty(), "a running lab keeps none");
    }

    #[tokio::test]
    async fn only_the_newest_events_are_kept() {
        let store = ObservedObjects::default();
        let mut ours = store.follow(place("labs"));
        ours.keep_events(Vec::new());
        (0..300).for_each(|number| store.read().put_event(event("Pod", "nb-ada", number)));
        let kept = ours.events();
        assert_eq!(kept.len(), 200);
        assert_eq!(kept.first().unwrap().metadata.uid.as_deref(), Some("0100"));
    }

    #[test]
    fn a_dropped_follower_is_removed_from_the_index() {
        let store = ObservedObjects::default();
        let mut ours = store.follow(place("labs"));
        ours.keep_events(vec![(NamespaceName::parse("labs").unwrap(), "claim-ada".to_owned())]);
        let signal = Arc::downgrade(&ours.signal);
        drop(ours);
        assert!(signal.upgrade().is_none());
    }
}
