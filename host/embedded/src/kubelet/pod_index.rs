//! The pods of this node by name, for requests for their logs.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use tokio::sync::watch;

/// Pods by namespace and name.
#[derive(Debug, Default)]
pub(crate) struct PodIndex(Mutex<HashMap<(String, String), IndexedPod>>);

/// A pod's uid and its status as it is now.
#[derive(Debug, Clone)]
pub(crate) struct IndexedPod {
    pub(crate) uid: String,
    pub(crate) status: watch::Receiver<PodStatus>,
}

impl PodIndex {
    pub(crate) fn add(&self, pod: &Pod, status: watch::Receiver<PodStatus>) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.pods().insert(key(pod), IndexedPod { uid, status });
    }

    /// Forgets this very pod, not a later one of the same name.
    pub(crate) fn remove(&self, pod: &Pod) {
        let mut pods = self.pods();
        if pods.get(&key(pod)).is_some_and(|known| pod.metadata.uid.as_ref() == Some(&known.uid)) {
            pods.remove(&key(pod));
        }
    }

    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<IndexedPod> {
        self.pods().get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    fn pods(&self) -> MutexGuard<'_, HashMap<(String, String), IndexedPod>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(pod: &Pod) -> (String, String) {
    (pod.metadata.namespace.clone().unwrap_or_default(), pod.metadata.name.clone().unwrap_or_default())
}
