//! The workloads into which labs may be put, and their pods with labs, as watches show them.
//!
//! There are few such workloads and few labs in them, so every change of one wakes the drivers of all.

mod watching;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, ObjectReference, Pod};
use tokio::sync::watch;
use wasmspawner_core::names::NamespaceName;
use wasmspawner_core::workload::{
    LabMark, LabPod, Revisions, Workload, WorkloadKind, WorkloadObject, WorkloadState,
};

use crate::k8s::WorkloadRequests;

/// The number of events that are kept for a namespace. The newest are kept.
const MAX_EVENTS: usize = 500;

/// The workloads into which labs may be put. Clones share the data.
#[derive(Clone)]
pub struct Workloads {
    /// Puts labs in and takes them out.
    pub requests: WorkloadRequests,
    namespaces: Arc<[NamespaceName]>,
    index: Arc<RwLock<Index>>,
    /// Notifies receivers of every change.
    changed: watch::Sender<()>,
    /// The watches that have shown their first list.
    synced: watch::Sender<HashSet<String>>,
}

#[derive(Default)]
struct Index {
    workloads: HashMap<Workload, WorkloadState>,
    /// The labs in each pod, by its namespace and name.
    pods: HashMap<(String, String), Vec<Arc<LabPod>>>,
    /// The revisions with labs. A deleted revision stays as long as its pods.
    revisions: Arc<Revisions>,
    events: HashMap<String, VecDeque<Arc<Event>>>,
}

/// The longest time that the start of the service waits for the first lists.
const MAX_SYNC: Duration = Duration::from_secs(10);

/// The number of watches with a first list in each namespace: pods, revisions, and one for each kind of workload.
const WATCHES: usize = 5;

impl Workloads {
    /// Creates a `Workloads` for these namespaces, with nothing known of their workloads yet.
    pub fn new(requests: WorkloadRequests, namespaces: impl IntoIterator<Item = NamespaceName>) -> Self {
        Self {
            requests,
            namespaces: namespaces.into_iter().collect(),
            index: Arc::default(),
            changed: watch::Sender::new(()),
            synced: watch::Sender::new(HashSet::new()),
        }
    }

    /// True if labs may be put into the workloads of this namespace.
    pub fn are_in(&self, namespace: &NamespaceName) -> bool {
        self.namespaces.contains(namespace)
    }

    /// Waits until everything has been listed once, but not for long. Somebody else may have deleted one of the
    /// namespaces and the permissions with it, and this must not keep the service from all other labs.
    pub async fn first_sync(&self) {
        let all = self.namespaces.len() * WATCHES;
        let mut synced = self.synced.subscribe();
        // The sender is a part of this value, so the waiting itself cannot fail.
        if tokio::time::timeout(MAX_SYNC, synced.wait_for(|synced| synced.len() >= all)).await.is_err() {
            tracing::error!(
                "not all namespaces of workloads.namespaces can be listed; labs there are left as they are"
            );
        }
    }

    /// True once everything in the namespace has been listed. Before that, an object that is not known may exist.
    pub fn is_synced(&self, namespace: &NamespaceName) -> bool {
        let synced = self.synced.borrow();
        let kinds = WorkloadKind::ALL.map(WorkloadKind::kind);
        kinds.into_iter().chain(["Pod", REVISION]).all(|kind| synced.contains(&watch_of(kind, namespace)))
    }

    /// A receiver of every change.
    pub fn follow(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns the known state of a workload.
    pub fn state(&self, workload: &Workload) -> Option<WorkloadState> {
        self.read().workloads.get(workload).cloned()
    }

    /// The pods in this namespace with this lab.
    pub fn pods(&self, namespace: &NamespaceName, mark: &LabMark) -> Vec<Arc<LabPod>> {
        let index = self.read();
        let here = index.pods.iter().filter(|((of, _), _)| of == namespace.as_str());
        here.flat_map(|(_, labs)| labs).filter(|lab| lab.mark == *mark).cloned().collect()
    }

    /// The revisions of workloads that have labs.
    pub fn revisions(&self) -> Arc<Revisions> {
        Arc::clone(&self.read().revisions)
    }

    /// The events about this lab's containers in this pod, and about the pod as a whole.
    pub fn events(&self, pod: &LabPod) -> Vec<Event> {
        let index = self.read();
        let events = index.events.get(&pod.pod.namespace).into_iter().flatten();
        let about = |event: &&Arc<Event>| {
            let about = &event.involved_object;
            about.uid == pod.pod.uid
                && about.field_path.as_deref().and_then(container).is_none_or(|name| pod.mark.owns(name))
        };
        events.filter(about).map(|event| Event::clone(event)).collect()
    }

    /// Stores a workload that the API server has returned.
    pub fn put(&self, workload: &Workload, object: WorkloadObject) {
        self.write().put(workload.clone(), object.state);
        self.changed.send_replace(());
    }

    /// Replaces the known pods with this lab by those that the API server has listed.
    pub fn put_pods(&self, namespace: &NamespaceName, mark: &LabMark, listed: &[Pod]) {
        let mut index = self.write();
        let names: HashSet<&str> = listed.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
        index.pods.retain(|(of, name), labs| {
            of != namespace.as_str()
                || names.contains(name.as_str())
                || labs.iter().all(|lab| lab.mark != *mark)
        });
        for pod in listed {
            index.put_pod(pod);
        }
        drop(index);
        self.changed.send_replace(());
    }

    /// Removes a workload that does not exist any more.
    pub fn remove(&self, workload: &Workload) {
        self.write().workloads.remove(workload);
        self.changed.send_replace(());
    }

    fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    /// Stores the workload, unless a newer version of it is known.
    fn put(&mut self, workload: Workload, state: WorkloadState) {
        let newer = |known: &WorkloadState| known.uid == state.uid && known.version > state.version;
        if !self.workloads.get(&workload).is_some_and(newer) {
            self.workloads.insert(workload, state);
        }
    }

    /// Stores the labs in a pod, unless a newer version of it is known.
    fn put_pod(&mut self, pod: &Pod) {
        let labs: Vec<Arc<LabPod>> = LabPod::all(pod).into_iter().map(Arc::new).collect();
        let Some(first) = labs.first() else { return };
        let key = (first.pod.namespace.clone(), first.pod.name.clone());
        let newer =
            |known: &Arc<LabPod>| known.pod.uid == first.pod.uid && known.pod.version > first.pod.version;
        if !self.pods.get(&key).and_then(|known| known.first()).is_some_and(newer) {
            self.pods.insert(key, labs);
        }
    }

    /// Forgets revisions that do not exist any more and have no pods.
    fn forget_revisions(&mut self, mut is_gone: impl FnMut(&str) -> bool) {
        let Self { revisions, pods, .. } = self;
        let has_pods = |uid: &str| pods.values().flatten().any(|pod| pod.is_controlled_by(uid));
        Arc::make_mut(revisions).retain(|uid, _| !is_gone(uid) || has_pods(uid));
    }

    /// True if this is a pod with a lab.
    fn has_lab_in(&self, pod: &ObjectReference) -> bool {
        let key = pod.namespace.clone().zip(pod.name.clone());
        key.and_then(|key| self.pods.get(&key))
            .and_then(|labs| labs.first())
            .is_some_and(|lab| lab.pod.uid == pod.uid)
    }

    fn put_event(&mut self, namespace: &str, event: Event) {
        let events = self.events.entry(namespace.to_owned()).or_default();
        events.retain(|known| known.metadata.uid != event.metadata.uid);
        events.push_back(Arc::new(event));
        while events.len() > MAX_EVENTS {
            events.pop_front();
        }
    }
}

/// The kind of the objects between a `Deployment` and its pods.
const REVISION: &str = "ReplicaSet";

/// The name of a watch with a first list.
fn watch_of(kind: &str, namespace: &NamespaceName) -> String {
    format!("{kind} {namespace}")
}

/// The container that a field path such as `spec.containers{web}` names.
fn container(field_path: &str) -> Option<&str> {
    field_path.split_once('{')?.1.strip_suffix('}')
}
