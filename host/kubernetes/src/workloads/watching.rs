//! The watches that keep the knowledge about workloads current.

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::join_all;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::DynamicObject;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::names::{NamespaceName, ObjectName};
use wasmspawner_core::workload::{Workload, WorkloadKind, controller_uid};

use super::{REVISION, Workloads, watch_of};
use crate::k8s::{parse_workload, workload_resource};
use crate::watches::{Readable, changes, short_watch, slim_event};

impl Workloads {
    /// Watches until `stop`: the workloads of all namespaces, and those of their pods that have `label`.
    pub async fn run(&self, client: Client, label: &str, stop: &CancellationToken) {
        let all = self.namespaces.iter().flat_map(|namespace| {
            let kinds = WorkloadKind::ALL
                .map(|kind| Box::pin(self.follow_kind(&client, namespace, kind, stop)) as Watch<'_>);
            let pods = Box::pin(self.follow_pods(&client, namespace, label, stop)) as Watch<'_>;
            let revisions = Box::pin(self.follow_revisions(&client, namespace, label, stop)) as Watch<'_>;
            let events = Box::pin(self.follow_events(&client, namespace, stop)) as Watch<'_>;
            kinds.into_iter().chain([pods, revisions, events])
        });
        join_all(all.collect::<Vec<_>>()).await;
    }

    async fn follow_kind(
        &self,
        client: &Client,
        namespace: &NamespaceName,
        kind: WorkloadKind,
        stop: &CancellationToken,
    ) {
        let api: Api<Readable<DynamicObject>> =
            Api::namespaced_with(client.clone(), namespace.as_str(), &workload_resource(kind));
        let mut listed = HashSet::new();
        watch(api, short_watch(), stop, |change| {
            match change {
                watcher::Event::Init => listed.clear(),
                watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                    if let Some(workload) = name(kind, &object) {
                        listed.insert(workload.clone());
                        match parse_workload(kind, &object) {
                            Ok(object) => self.write().put(workload, object.state),
                            Err(error) => tracing::warn!(%error, %workload, "a workload cannot be read"),
                        }
                    }
                }
                watcher::Event::InitDone => {
                    self.write().workloads.retain(|known, _| {
                        known.kind != kind || known.namespace != *namespace || listed.contains(known)
                    });
                    self.note_synced(namespace, kind.kind());
                }
                watcher::Event::Delete(object) => {
                    if let Some(workload) = name(kind, &object) {
                        self.write().workloads.remove(&workload);
                    }
                }
            }
            self.changed.send_replace(());
        })
        .await;
    }

    async fn follow_pods(
        &self,
        client: &Client,
        namespace: &NamespaceName,
        label: &str,
        stop: &CancellationToken,
    ) {
        let api: Api<Readable<Pod>> = Api::namespaced(client.clone(), namespace.as_str());
        let mut listed = HashSet::new();
        watch(api, short_watch().labels(label), stop, |change| {
            match change {
                watcher::Event::Init => listed.clear(),
                watcher::Event::InitApply(pod) | watcher::Event::Apply(pod) => {
                    listed.insert(pod.metadata.name.clone().unwrap_or_default());
                    self.write().put_pod(&pod);
                }
                watcher::Event::InitDone => {
                    self.write()
                        .pods
                        .retain(|(of, name), _| of != namespace.as_str() || listed.contains(name));
                    self.note_synced(namespace, "Pod");
                }
                watcher::Event::Delete(pod) => {
                    let name = pod.metadata.name.unwrap_or_default();
                    self.write().pods.remove(&(namespace.to_string(), name));
                }
            }
            self.changed.send_replace(());
        })
        .await;
    }

    /// Follows the revisions with this label. A `Deployment` gives the labels of its pods to its revisions, too.
    async fn follow_revisions(
        &self,
        client: &Client,
        namespace: &NamespaceName,
        label: &str,
        stop: &CancellationToken,
    ) {
        let api: Api<Readable<ReplicaSet>> = Api::namespaced(client.clone(), namespace.as_str());
        let (mut here, mut listed) = (HashSet::new(), HashSet::new());
        watch(api, short_watch().labels(label), stop, |change| {
            match change {
                watcher::Event::Init => listed.clear(),
                watcher::Event::InitApply(revision) | watcher::Event::Apply(revision) => {
                    let deployment = controller_uid(&revision.metadata, WorkloadKind::Deployment.kind());
                    let Some(uid) = revision.metadata.uid else { return };
                    if let Some(deployment) = deployment {
                        listed.insert(uid.clone());
                        here.insert(uid.clone());
                        Arc::make_mut(&mut self.write().revisions).insert(uid, deployment);
                    } else {
                        // The controller has released the revision, because it is not one of its own.
                        Arc::make_mut(&mut self.write().revisions).remove(&uid);
                    }
                }
                watcher::Event::InitDone => {
                    self.write().forget_revisions(|uid| here.contains(uid) && !listed.contains(uid));
                    here.retain(|uid| listed.contains(uid));
                    self.note_synced(namespace, REVISION);
                }
                watcher::Event::Delete(revision) => {
                    let uid = revision.metadata.uid.unwrap_or_default();
                    self.write().forget_revisions(|gone| *gone == uid);
                }
            }
            self.changed.send_replace(());
        })
        .await;
    }

    async fn follow_events(&self, client: &Client, namespace: &NamespaceName, stop: &CancellationToken) {
        let api: Api<Readable<Event>> = Api::namespaced(client.clone(), namespace.as_str());
        watch(api, short_watch().fields("involvedObject.kind=Pod"), stop, |change| {
            if let watcher::Event::InitApply(event) | watcher::Event::Apply(event) = change {
                let mut index = self.write();
                let is_of_lab = index.has_lab_in(&event.involved_object);
                index.put_event(namespace.as_str(), slim_event(event));
                drop(index);
                // An event that comes before its pod is seen with the pod.
                if is_of_lab {
                    self.changed.send_replace(());
                }
            }
        })
        .await;
    }

    fn note_synced(&self, namespace: &NamespaceName, kind: &str) {
        self.synced.send_modify(|synced| {
            synced.insert(watch_of(kind, namespace));
        });
    }
}

type Watch<'a> = std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

fn name(kind: WorkloadKind, object: &DynamicObject) -> Option<Workload> {
    let namespace = NamespaceName::parse(object.metadata.namespace.as_deref()?).ok()?;
    let name = ObjectName::parse(object.metadata.name.as_deref()?).ok()?;
    Some(Workload { kind, namespace, name })
}

async fn watch<K>(
    api: Api<Readable<K>>,
    config: watcher::Config,
    stop: &CancellationToken,
    mut on_change: impl FnMut(watcher::Event<K>),
) where
    K: Resource<DynamicType: Clone> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut stream = std::pin::pin!(changes(api, config));
    while let Some(change) = stop.run_until_cancelled(stream.next()).await.flatten() {
        match change {
            Ok(change) => on_change(change),
            Err(error) if is_forbidden(&error) => tracing::error!(
                %error,
                "the service may not watch a namespace of workloads.namespaces; apply deploy/permissions/workloads.yaml there, or \
                 remove it from the configuration"
            ),
            Err(error) => tracing::warn!(%error, "a watch of workloads failed and is begun again"),
        }
    }
}

fn is_forbidden(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 403)
}
