//! What the cluster has, as the shared watches show it: one for the service, whatever the number of labs.
//!
//! [`Store::run`] keeps it current. A driver follows its lab's place with a [`Follower`]: it is woken when something at
//! that place changed, and then reads what is there now. Nothing is queued, so that a driver that is busy misses
//! nothing and a change of one lab costs no other lab anything.

mod follower;
mod index;
mod interest;
mod slim;
mod watching;

pub use follower::{Claim, Follower};
pub use index::NamespaceState;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use tokio::sync::watch;
use tokio::time::Instant;
use wasmspawner_core::record::Place;
use wasmspawner_core::stage::ObservedPod;

use index::Index;

/// What the cluster has. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    index: Arc<RwLock<Index>>,
    synced: watch::Sender<Synced>,
    heard: Arc<RwLock<HashMap<&'static str, Instant>>>,
}

/// Which first lists are complete.
#[derive(Debug, Clone, Copy, Default)]
struct Synced {
    pods: bool,
    namespaces: bool,
}

impl Default for Store {
    fn default() -> Self {
        Self { index: Arc::default(), synced: watch::Sender::new(Synced::default()), heard: Arc::default() }
    }
}

impl Store {
    /// Waits until pods and namespaces were listed once: before that, what is not there is only not known.
    pub async fn first_sync(&self) {
        // The sender is a part of this store: it cannot be gone.
        let _ = self.synced.subscribe().wait_for(|synced| synced.pods && synced.namespaces).await;
    }

    /// Follows a place.
    pub fn follow(&self, place: Place) -> Follower {
        Follower::new(self.clone(), place)
    }

    /// The pod at a place.
    pub fn pod(&self, place: &Place) -> Option<Arc<ObservedPod>> {
        self.read().pod(place.namespace.as_str(), place.pod.as_str())
    }

    /// The namespace of this name, if it is one of ours.
    pub fn namespace(&self, name: &str) -> Option<NamespaceState> {
        self.read().namespace(name)
    }

    /// Every pod, with its namespace and name.
    pub fn pods(&self) -> Vec<Arc<ObservedPod>> {
        self.read().pods()
    }

    /// Every namespace.
    pub fn namespaces(&self) -> Vec<(String, NamespaceState)> {
        self.read().namespaces()
    }

    /// A request was answered with this pod; a watch may have shown something newer of it already.
    pub fn learn_pod(&self, pod: &Pod) {
        self.write().put_pod(pod.into());
    }

    /// A request was answered with this namespace.
    pub fn learn_namespace(&self, namespace: &Namespace) {
        self.write().put_namespace(namespace);
    }

    /// A request was answered that there is no such pod. `uid` is the one that was known before the request was made:
    /// another may have come since.
    pub fn learn_pod_gone(&self, place: &Place, uid: Option<&str>) {
        if uid.is_some() {
            self.write().remove_pod(place.namespace.as_str(), place.pod.as_str(), uid);
        }
    }

    /// A request was answered that there is no such namespace; the same holds.
    pub fn learn_namespace_gone(&self, name: &str, uid: Option<&str>) {
        if uid.is_some() {
            self.write().remove_namespace(name, uid);
        }
    }

    /// How long ago each watch was last heard of, bookmarks not counted.
    pub fn silence(&self) -> Vec<(&'static str, Duration)> {
        let heard = self.heard.read().unwrap_or_else(PoisonError::into_inner);
        heard.iter().map(|(kind, at)| (*kind, at.elapsed())).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }
}
