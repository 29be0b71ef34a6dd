//! The watches that keep the store current, one for each kind of object.

use std::fmt::Debug;
use std::sync::PoisonError;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::lifecycle::stage::ObservedPod;

use super::index::Key;
use super::{ObservedObjects, Reach};
use crate::watches::{Readable, changes, short_watch, slim_event};

impl ObservedObjects {
    /// Watches the pods and namespaces that `selector` selects, until `stop`. Namespaces are not watched if all labs
    /// are in one. Failures are logged and retried. The next list brings the changes that were missed meanwhile,
    /// including deletions.
    pub async fn run(&self, client: Client, reach: &Reach, selector: &str, stop: &CancellationToken) {
        let config = short_watch().labels(selector);
        let (mut pods, mut namespaces) = (PodList::default(), NamespaceList::default());
        tokio::join!(
            watch::<Pod>(reach.all(client.clone()), config.clone(), stop, |change| {
                self.note_activity("pods");
                self.on_pod(change, &mut pods);
            }),
            async {
                if *reach != Reach::Cluster {
                    return self.synced.send_modify(|synced| synced.namespaces = true);
                }
                watch::<Namespace>(Api::all(client.clone()), config, stop, |change| {
                    self.note_activity("namespaces");
                    self.on_namespace(change, &mut namespaces);
                    self.namespaces_changed.send_replace(());
                })
                .await;
            },
        );
    }

    /// Watches the events about pods and volume claims, until `stop`. This must start after the drivers follow their
    /// places, because events without a follower are not kept.
    pub async fn run_events(&self, client: Client, reach: &Reach, stop: &CancellationToken) {
        let about = |kind: &str| {
            let fields = format!("involvedObject.kind={kind}");
            let config = short_watch().fields(&fields);
            watch::<Event>(reach.all(client.clone()), config, stop, |change| {
                self.note_activity("events");
                if let watcher::Event::InitApply(event) | watcher::Event::Apply(event) = change {
                    self.read().put_event(slim_event(event));
                }
            })
        };
        tokio::join!(about("Pod"), about("PersistentVolumeClaim"));
    }

    fn on_pod(&self, change: watcher::Event<Pod>, list: &mut PodList) {
        match change {
            watcher::Event::Init => *list = PodList { before: self.read().known_pods(), listed: Vec::new() },
            watcher::Event::InitApply(pod) => list.listed.push((&pod).into()),
            watcher::Event::InitDone => {
                let PodList { before, listed } = std::mem::take(list);
                self.write().replace_pods(before, listed);
                self.synced.send_modify(|synced| synced.pods = true);
            }
            watcher::Event::Apply(pod) => self.write().put_pod((&pod).into()),
            watcher::Event::Delete(Pod { metadata, .. }) => {
                let (namespace, name) =
                    (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
                self.write().remove_pod(&namespace, &name, metadata.uid.as_deref());
            }
        }
    }

    fn on_namespace(&self, change: watcher::Event<Namespace>, list: &mut NamespaceList) {
        match change {
            watcher::Event::Init => {
                *list = NamespaceList { before: self.read().known_namespaces(), listed: Vec::new() };
            }
            watcher::Event::InitApply(namespace) => list.listed.push(namespace),
            watcher::Event::InitDone => {
                let NamespaceList { before, listed } = std::mem::take(list);
                self.write().replace_namespaces(before, &listed);
                self.synced.send_modify(|synced| synced.namespaces = true);
            }
            watcher::Event::Apply(namespace) => self.write().put_namespace(&namespace),
            watcher::Event::Delete(Namespace { metadata, .. }) => {
                self.write().remove_namespace(&metadata.name.unwrap_or_default(), metadata.uid.as_deref());
            }
        }
    }

    fn note_activity(&self, kind: &'static str) {
        self.last_activity.write().unwrap_or_else(PoisonError::into_inner).insert(kind, Instant::now());
    }
}

/// A list of pods that is being read.
#[derive(Default)]
struct PodList {
    before: Vec<(Key, Option<String>)>,
    listed: Vec<ObservedPod>,
}

/// A list of namespaces that is being read.
#[derive(Default)]
struct NamespaceList {
    before: Vec<(String, String)>,
    listed: Vec<Namespace>,
}

async fn watch<K>(
    api: Api<Readable<K>>,
    config: watcher::Config,
    stop: &CancellationToken,
    mut on_change: impl FnMut(watcher::Event<K>),
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut stream = std::pin::pin!(changes(api, config));
    while let Some(change) = stop.run_until_cancelled(stream.next()).await.flatten() {
        match change {
            Ok(change) => on_change(change),
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), %error, "a watch failed and is begun again");
            }
        }
    }
}
