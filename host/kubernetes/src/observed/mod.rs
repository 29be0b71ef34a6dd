//! The objects of all labs, as watches show them. The service has one set of watches, whatever the number of labs.
//!
//! [`ObservedObjects::run`] keeps the store current. A driver follows its lab's place with a [`Follower`]: the follower wakes it
//! when something at that place has changed, and the driver then reads the present state. Changes are not queued, so a
//! busy driver misses nothing, and a change of one lab costs other labs nothing.

mod follower;
mod index;
mod reach;
mod signal;
mod watching;

pub use follower::{Claim, Follower};
pub use index::NamespaceState;
pub use reach::Reach;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use tokio::sync::watch;
use tokio::time::Instant;
use wasmspawner_core::lifecycle::stage::ObservedPod;
use wasmspawner_core::record::Place;

use index::Index;

/// The objects of all labs, as watches show them. Clones share the data.
#[derive(Clone)]
pub struct ObservedObjects {
    index: Arc<RwLock<Index>>,
    synced: watch::Sender<Synced>,
    /// Notifies receivers when a namespace is new, has changed or is gone, in this store's cluster or in that of a
    /// store beside it.
    namespaces_changed: watch::Sender<()>,
    last_activity: Arc<RwLock<HashMap<&'static str, Instant>>>,
}

/// The completeness of the first lists.
#[derive(Debug, Clone, Copy, Default)]
struct Synced {
    pods: bool,
    namespaces: bool,
}

impl Default for ObservedObjects {
    fn default() -> Self {
        Self {
            index: Arc::default(),
            synced: watch::Sender::new(Synced::default()),
            namespaces_changed: watch::Sender::new(()),
            last_activity: Arc::default(),
        }
    }
}

impl ObservedObjects {
    /// Creates the store of another cluster. A receiver of the changes of namespaces in one of the two stores receives
    /// those of both.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self { namespaces_changed: self.namespaces_changed.clone(), ..Self::default() }
    }

    /// Waits until pods, and namespaces if they are watched, have been listed once. Before that, an object that is not
    /// in the store may exist.
    pub async fn first_sync(&self) {
        // The sender is a part of this store, so waiting cannot fail.
        let _ = self.synced.subscribe().wait_for(|synced| synced.pods && synced.namespaces).await;
    }

    /// True once [`Self::first_sync`] has ended.
    pub fn is_synced(&self) -> bool {
        let synced = self.synced.borrow();
        synced.pods && synced.namespaces
    }

    /// A receiver of every change of namespaces, including those in the stores beside this one.
    pub fn follow_namespaces(&self) -> watch::Receiver<()> {
        self.namespaces_changed.subscribe()
    }

    /// Follows a place in the cluster.
    pub fn follow(&self, place: Place) -> Follower {
        Follower::new(self.clone(), place)
    }

    /// The pod at a place.
    pub fn pod(&self, place: &Place) -> Option<Arc<ObservedPod>> {
        self.read().pod(place.namespace.as_str(), place.pod.as_str())
    }

    /// The namespace of this name, if it has this service's labels.
    pub fn namespace(&self, name: &str) -> Option<NamespaceState> {
        self.read().namespace(name)
    }

    /// The workers of the Dask pool in `namespace` whose record has this uid.
    pub fn workers(&self, namespace: &str, pool: &str) -> Vec<Arc<ObservedPod>> {
        self.read().workers(namespace, pool)
    }

    /// All pods.
    pub fn pods(&self) -> Vec<Arc<ObservedPod>> {
        self.read().pods()
    }

    /// All namespaces, by name.
    pub fn namespaces(&self) -> Vec<(String, NamespaceState)> {
        self.read().namespaces()
    }

    /// Stores a pod that the API server returned. If a watch has shown a newer version already, that one stays.
    pub fn put_pod(&self, pod: &Pod) {
        self.write().put_pod(pod.into());
    }

    /// Stores a namespace that the API server returned.
    pub fn put_namespace(&self, namespace: &Namespace) {
        self.write().put_namespace(namespace);
        self.namespaces_changed.send_replace(());
    }

    /// Removes a pod that does not exist, as the API server has answered. `uid` is that of the pod known before the
    /// request: a new pod of the same name may have appeared since, and stays.
    pub fn remove_pod(&self, place: &Place, uid: Option<&str>) {
        if uid.is_some() {
            self.write().remove_pod(place.namespace.as_str(), place.pod.as_str(), uid);
        }
    }

    /// Removes a namespace that does not exist, as the API server has answered. `uid` is that of the namespace known
    /// before the request.
    pub fn remove_namespace(&self, name: &str, uid: Option<&str>) {
        if uid.is_some() {
            self.write().remove_namespace(name, uid);
            self.namespaces_changed.send_replace(());
        }
    }

    /// The time since each watch last delivered something; bookmarks do not count.
    pub fn silence(&self) -> Vec<(&'static str, Duration)> {
        let last_activity = self.last_activity.read().unwrap_or_else(PoisonError::into_inner);
        last_activity.iter().map(|(kind, at)| (*kind, at.elapsed())).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }
}
