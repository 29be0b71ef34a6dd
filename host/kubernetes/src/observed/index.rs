//! The objects by namespace and name, and the followers of each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Event, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use wasmspawner_core::custom_resource::environment::TARGET_LABEL;
use wasmspawner_core::lifecycle::stage::ObservedPod;
use wasmspawner_core::names::labels::{KEPT_ANNOTATION, SPAWN_LABEL};

use super::signal::FollowerSignal;

pub(super) type Key = (String, String);

/// The objects by namespace and name, and the followers of each.
#[derive(Default)]
pub(super) struct Index {
    pods: HashMap<Key, Arc<ObservedPod>>,
    namespaces: HashMap<String, NamespaceState>,
    pod_followers: HashMap<Key, Vec<Arc<FollowerSignal>>>,
    namespace_followers: HashMap<String, Vec<Arc<FollowerSignal>>>,
    claim_followers: HashMap<Key, Vec<Arc<FollowerSignal>>>,
    /// The workers of each Dask pool, by its namespace and the uid of its record. In another namespace, a pod with the
    /// same labels is somebody else's.
    workers: HashMap<Key, HashSet<Key>>,
    worker_followers: HashMap<Key, Vec<Arc<FollowerSignal>>>,
}

/// The part of a namespace that is kept in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceState {
    /// The uid, which differs from that of an earlier namespace of the same name.
    pub uid: String,
    /// The uid of the record that it was created for; `None` if this service did not create it for a lab.
    pub spawn: Option<String>,
    /// The uid of the target that it was made for; `None` if it was not made for one.
    pub target: Option<String>,
    /// The digest of its labels and annotations if it may be kept for the next lab of its server.
    pub kept_as: Option<String>,
    /// True while it is being deleted.
    pub deleting: bool,
    /// The reason why its deletion does not finish, in the words of Kubernetes: the objects that are left, and the
    /// finalizers that remain.
    pub stuck: Option<String>,
    version: u64,
}

impl NamespaceState {
    /// The part of the namespace that is kept in memory.
    pub fn from_namespace(namespace: &Namespace) -> Self {
        let meta = &namespace.metadata;
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            spawn: meta.labels.as_ref().and_then(|labels| labels.get(SPAWN_LABEL)).cloned(),
            target: meta.labels.as_ref().and_then(|labels| labels.get(TARGET_LABEL)).cloned(),
            kept_as: meta.annotations.as_ref().and_then(|found| found.get(KEPT_ANNOTATION)).cloned(),
            deleting: meta.deletion_timestamp.is_some(),
            stuck: stuck(namespace),
            version: version(meta),
        }
    }
}

/// Returns the reason why the deletion does not finish. The namespace controller reports it in conditions.
fn stuck(namespace: &Namespace) -> Option<String> {
    namespace.metadata.deletion_timestamp.as_ref()?;
    let conditions = namespace.status.as_ref()?.conditions.as_ref()?;
    let waits = conditions.iter().filter(|condition| {
        condition.status == "True"
            && matches!(
                condition.type_.as_str(),
                "NamespaceContentRemaining"
                    | "NamespaceFinalizersRemaining"
                    | "NamespaceDeletionContentFailure"
                    | "NamespaceDeletionDiscoveryFailure"
                    | "NamespaceDeletionGroupVersionParsingFailure"
            )
    });
    let messages: Vec<&str> = waits.filter_map(|condition| condition.message.as_deref()).collect();
    (!messages.is_empty()).then(|| messages.join("; "))
}

impl Index {
    pub(super) fn pod(&self, namespace: &str, name: &str) -> Option<Arc<ObservedPod>> {
        self.pods.get(&key(namespace, name)).cloned()
    }

    pub(super) fn namespace(&self, name: &str) -> Option<NamespaceState> {
        self.namespaces.get(name).cloned()
    }

    pub(super) fn pods(&self) -> Vec<Arc<ObservedPod>> {
        self.pods.values().cloned().collect()
    }

    pub(super) fn namespaces(&self) -> Vec<(String, NamespaceState)> {
        self.namespaces.iter().map(|(name, state)| (name.clone(), state.clone())).collect()
    }

    /// Stores the pod, unless a newer version of it is known.
    pub(super) fn put_pod(&mut self, pod: ObservedPod) {
        let key = key(&pod.namespace, &pod.name);
        if self.pods.get(&key).is_some_and(|known| known.version > pod.version) {
            return;
        }
        wake(self.pod_followers.get(&key));
        let pool = pool_of(&pod);
        if let Some(pool) = &pool {
            wake(self.worker_followers.get(pool));
            self.workers.entry(pool.clone()).or_default().insert(key.clone());
        }
        let before = self.pods.insert(key.clone(), Arc::new(pod)).and_then(|before| pool_of(&before));
        if before != pool {
            self.remove_worker(before.as_ref(), &key);
        }
    }

    /// Removes the pod; with a uid, only if it is the pod with that uid.
    pub(super) fn remove_pod(&mut self, namespace: &str, name: &str, uid: Option<&str>) {
        let key = key(namespace, name);
        let same = |known: &Arc<ObservedPod>| uid.is_none() || known.uid.as_deref() == uid;
        if !self.pods.get(&key).is_some_and(same) {
            return;
        }
        wake(self.pod_followers.get(&key));
        let pool = self.pods.remove(&key).and_then(|pod| pool_of(&pod));
        self.remove_worker(pool.as_ref(), &key);
    }

    fn remove_worker(&mut self, pool: Option<&Key>, key: &Key) {
        let Some(pool) = pool else { return };
        wake(self.worker_followers.get(pool));
        if let Some(workers) = self.workers.get_mut(pool) {
            workers.remove(key);
            if workers.is_empty() {
                self.workers.remove(pool);
            }
        }
    }

    /// The workers of the Dask pool in `namespace` whose record has this uid.
    pub(super) fn workers(&self, namespace: &str, pool: &str) -> Vec<Arc<ObservedPod>> {
        let keys = self.workers.get(&key(namespace, pool)).into_iter().flatten();
        keys.filter_map(|key| self.pods.get(key).cloned()).collect()
    }

    pub(super) fn add_workers(&mut self, namespace: &str, pool: &str, signal: &Arc<FollowerSignal>) {
        self.worker_followers.entry(key(namespace, pool)).or_default().push(Arc::clone(signal));
    }

    pub(super) fn drop_workers(&mut self, namespace: &str, pool: &str, signal: &Arc<FollowerSignal>) {
        remove(&mut self.worker_followers, &key(namespace, pool), signal);
    }

    pub(super) fn put_namespace(&mut self, namespace: &Namespace) {
        let name = namespace.metadata.name.clone().unwrap_or_default();
        let state = NamespaceState::from_namespace(namespace);
        if self.namespaces.get(&name).is_some_and(|known| known.version > state.version) {
            return;
        }
        wake(self.namespace_followers.get(&name));
        self.namespaces.insert(name, state);
    }

    pub(super) fn remove_namespace(&mut self, name: &str, uid: Option<&str>) {
        let same = |known: &NamespaceState| uid.is_none_or(|uid| known.uid == uid);
        if self.namespaces.get(name).is_some_and(same) {
            self.namespaces.remove(name);
            wake(self.namespace_followers.get(name));
        }
    }

    /// Passes the event to the followers of the pod or the claim that it is about. Other events are not kept.
    pub(super) fn put_event(&self, event: Event) {
        let about = &event.involved_object;
        let key =
            key(about.namespace.as_deref().unwrap_or_default(), about.name.as_deref().unwrap_or_default());
        let followers = match about.kind.as_deref() {
            Some("Pod") => self.pod_followers.get(&key),
            Some("PersistentVolumeClaim") => self.claim_followers.get(&key),
            _ => None,
        };
        let event = Arc::new(event);
        for signal in followers.into_iter().flatten() {
            signal.put_event(Arc::clone(&event));
        }
    }

    /// Returns the known pods with their uids. If a list that begins now does not contain one of them, that pod is
    /// gone.
    pub(super) fn known_pods(&self) -> Vec<(Key, Option<String>)> {
        self.pods.iter().map(|(key, pod)| (key.clone(), pod.uid.clone())).collect()
    }

    /// Applies a complete list of pods: pods in `before` that are missing from the list are gone. Pods that were added
    /// while the list was being read may be newer than the list, and stay.
    pub(super) fn replace_pods(&mut self, before: Vec<(Key, Option<String>)>, listed: Vec<ObservedPod>) {
        let present: HashSet<Option<String>> = listed.iter().map(|pod| pod.uid.clone()).collect();
        for pod in listed {
            self.put_pod(pod);
        }
        for ((namespace, name), uid) in before.into_iter().filter(|(_, uid)| !present.contains(uid)) {
            self.remove_pod(&namespace, &name, uid.as_deref());
        }
    }

    /// The known namespaces with their uids.
    pub(super) fn known_namespaces(&self) -> Vec<(String, String)> {
        self.namespaces.iter().map(|(name, state)| (name.clone(), state.uid.clone())).collect()
    }

    /// Applies a complete list of namespaces.
    pub(super) fn replace_namespaces(&mut self, before: Vec<(String, String)>, listed: &[Namespace]) {
        let present: HashSet<&str> =
            listed.iter().filter_map(|namespace| namespace.metadata.uid.as_deref()).collect();
        for namespace in listed {
            self.put_namespace(namespace);
        }
        for (name, uid) in before.into_iter().filter(|(_, uid)| !present.contains(uid.as_str())) {
            self.remove_namespace(&name, Some(&uid));
        }
    }

    pub(super) fn add(&mut self, namespace: &str, pod: &str, signal: &Arc<FollowerSignal>) {
        self.pod_followers.entry(key(namespace, pod)).or_default().push(Arc::clone(signal));
        self.namespace_followers.entry(namespace.to_owned()).or_default().push(Arc::clone(signal));
    }

    pub(super) fn add_claim(&mut self, namespace: &str, claim: &str, signal: &Arc<FollowerSignal>) {
        self.claim_followers.entry(key(namespace, claim)).or_default().push(Arc::clone(signal));
    }

    pub(super) fn drop_claim(&mut self, namespace: &str, claim: &str, signal: &Arc<FollowerSignal>) {
        remove(&mut self.claim_followers, &key(namespace, claim), signal);
    }

    pub(super) fn drop_follower(&mut self, namespace: &str, pod: &str, signal: &Arc<FollowerSignal>) {
        remove(&mut self.pod_followers, &key(namespace, pod), signal);
        remove(&mut self.namespace_followers, &namespace.to_owned(), signal);
    }
}

fn remove<K: std::hash::Hash + Eq>(
    followers: &mut HashMap<K, Vec<Arc<FollowerSignal>>>,
    key: &K,
    signal: &Arc<FollowerSignal>,
) {
    if let Some(here) = followers.get_mut(key) {
        here.retain(|other| !Arc::ptr_eq(other, signal));
        if here.is_empty() {
            followers.remove(key);
        }
    }
}

fn wake(followers: Option<&Vec<Arc<FollowerSignal>>>) {
    followers.into_iter().flatten().for_each(|signal| signal.wake());
}

/// The Dask pool that the pod is a worker of: its namespace, and the uid of its record.
fn pool_of(pod: &ObservedPod) -> Option<Key> {
    let pool = pod.spawn.as_deref().filter(|_| pod.is_worker)?;
    Some(key(&pod.namespace, pool))
}

fn key(namespace: &str, name: &str) -> Key {
    (namespace.to_owned(), name.to_owned())
}

/// The resource version as a number. Versions of one kind can be compared as numbers (KEP-5504); one that is not a
/// number counts as the newest.
fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, uid: &str, version: u64) -> ObservedPod {
        let mut pod = ObservedPod::default();
        (pod.namespace, pod.name) = ("n".to_owned(), name.to_owned());
        (pod.uid, pod.version) = (Some(uid.to_owned()), version);
        pod
    }

    #[test]
    fn the_workers_of_a_pool_are_known_without_a_search() {
        let worker = |name: &str, pool: &str, version| {
            let mut worker = pod(name, name, version);
            (worker.spawn, worker.is_worker) = (Some(pool.to_owned()), true);
            worker
        };
        let mut index = Index::default();
        index.put_pod(pod("scheduler", "0", 1));
        index.put_pod(worker("a", "p", 2));
        index.put_pod(worker("a", "p", 3));
        index.put_pod(worker("b", "other", 4));
        let names =
            |index: &Index| index.workers("n", "p").iter().map(|pod| pod.name.clone()).collect::<Vec<_>>();
        let mut elsewhere = worker("c", "p", 5);
        elsewhere.namespace = "of-somebody-else".to_owned();
        index.put_pod(elsewhere);
        assert_eq!(names(&index), ["a"]);
        index.put_pod(worker("a", "other", 6));
        assert!(names(&index).is_empty(), "it has other labels now");
        index.put_pod(worker("a", "p", 7));
        index.remove_pod("n", "a", None);
        assert!(names(&index).is_empty() && !index.workers.contains_key(&key("n", "p")));
    }

    fn uid(index: &Index, name: &str) -> Option<String> {
        index.pod("n", name)?.uid.clone()
    }

    #[test]
    fn an_older_version_of_a_pod_is_ignored() {
        let mut index = Index::default();
        index.put_pod(pod("a", "new", 7));
        index.put_pod(pod("a", "old", 5));
        index.remove_pod("n", "a", Some("old"));
        assert_eq!(uid(&index, "a").as_deref(), Some("new"));
        index.remove_pod("n", "a", Some("new"));
        assert_eq!(uid(&index, "a"), None);
    }

    #[test]
    fn a_list_removes_missing_pods_but_not_those_added_while_it_was_read() {
        let mut index = Index::default();
        index.put_pod(pod("a", "1", 1));
        index.put_pod(pod("b", "2", 2));
        let before = index.known_pods();
        index.put_pod(pod("d", "4", 4));
        index.replace_pods(before, vec![pod("b", "2", 2), pod("c", "3", 3)]);
        assert_eq!(["a", "b", "c", "d"].map(|name| uid(&index, name).is_some()), [false, true, true, true]);
    }
}
