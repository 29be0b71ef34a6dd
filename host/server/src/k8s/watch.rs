//! The shared watches: one a kind for the whole service, never one a lab.

use std::collections::HashMap;
use std::fmt::Debug;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What a watch saw.
#[derive(Debug, Clone)]
pub enum Change {
    /// A pod of ours is as given.
    Pod(Box<Pod>),
    /// A pod of ours is gone; as it last was.
    PodGone(Box<Pod>),
    /// A namespace of ours is as given.
    Namespace(Box<Namespace>),
    /// A namespace of ours is gone; as it last was.
    NamespaceGone(Box<Namespace>),
    /// Something was said about a pod or a volume claim, of ours or not.
    Event(Box<Event>),
}

/// The server is asked to end watches after this many seconds, because some platforms let them fall silent.
const RECONNECT_SECONDS: u32 = 240;

/// Watches until cancelled. Failures are logged, waited out and never fatal: what was missed meanwhile comes with the
/// next list, disappearances included.
pub async fn watch_labs(
    client: Client,
    selector: String,
    changes: mpsc::UnboundedSender<Change>,
    stop: CancellationToken,
) {
    let labelled = watcher::Config::default().timeout(RECONNECT_SECONDS).labels(&selector);
    let about = |kind: &str| {
        let fields = format!("involvedObject.kind={kind}");
        (
            Api::<Event>::all(client.clone()),
            watcher::Config::default().timeout(RECONNECT_SECONDS).fields(&fields),
        )
    };
    let (pod_events, about_pods) = about("Pod");
    let (claim_events, about_claims) = about("PersistentVolumeClaim");
    tokio::join!(
        watch(Api::all(client.clone()), labelled.clone(), &changes, &stop, pod, Some(pod_gone)),
        watch(Api::all(client.clone()), labelled, &changes, &stop, namespace, Some(namespace_gone)),
        watch(pod_events, about_pods, &changes, &stop, event, None),
        watch(claim_events, about_claims, &changes, &stop, event, None),
    );
}

fn pod(pod: Pod) -> Change {
    Change::Pod(Box::new(pod))
}

fn pod_gone(pod: Pod) -> Change {
    Change::PodGone(Box::new(pod))
}

fn namespace(namespace: Namespace) -> Change {
    Change::Namespace(Box::new(namespace))
}

fn namespace_gone(namespace: Namespace) -> Change {
    Change::NamespaceGone(Box::new(namespace))
}

fn event(event: Event) -> Change {
    Change::Event(Box::new(slim(event)))
}

async fn watch<K>(
    api: Api<K>,
    config: watcher::Config,
    changes: &mpsc::UnboundedSender<Change>,
    stop: &CancellationToken,
    say_changed: fn(K) -> Change,
    say_gone: Option<fn(K) -> Change>,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut stream = std::pin::pin!(
        watcher(api, config).default_backoff().modify(|object| object.meta_mut().managed_fields = None)
    );
    let mut known: Known<K> = Known::default();
    loop {
        let event = tokio::select! {
            event = stream.next() => event,
            () = stop.cancelled() => return,
        };
        match event {
            Some(Ok(event)) => {
                for change in known.take(event, say_changed, say_gone) {
                    if changes.send(change).is_err() {
                        return;
                    }
                }
            }
            Some(Err(error)) => {
                tracing::warn!(kind = %K::kind(&()), %error, "a watch failed and is begun again");
            }
            None => return,
        }
    }
}

/// What the watch has shown, so that a new list tells what disappeared while nobody looked.
struct Known<K> {
    now: HashMap<String, K>,
    listed: Option<HashMap<String, K>>,
}

impl<K> Default for Known<K> {
    fn default() -> Self {
        Self { now: HashMap::new(), listed: None }
    }
}

impl<K: Resource + Clone> Known<K> {
    /// What to say about an event of the watch. Where nobody asks what disappears, nothing is remembered.
    fn take(
        &mut self,
        event: watcher::Event<K>,
        say_changed: fn(K) -> Change,
        say_gone: Option<fn(K) -> Change>,
    ) -> Vec<Change> {
        match event {
            watcher::Event::Init => {
                self.listed = Some(HashMap::new());
                Vec::new()
            }
            watcher::Event::InitApply(object) => {
                if say_gone.is_some() {
                    self.listed.get_or_insert_default().insert(uid(&object), object.clone());
                }
                vec![say_changed(object)]
            }
            watcher::Event::InitDone => {
                let before = std::mem::replace(&mut self.now, self.listed.take().unwrap_or_default());
                let missing = before.into_iter().filter(|(uid, _)| !self.now.contains_key(uid));
                missing.filter_map(|(_, object)| say_gone.map(|say| say(object))).collect()
            }
            watcher::Event::Apply(object) => {
                if say_gone.is_some() {
                    self.now.insert(uid(&object), object.clone());
                }
                vec![say_changed(object)]
            }
            watcher::Event::Delete(object) => {
                self.now.remove(&uid(&object));
                say_gone.map(|say| say(object)).into_iter().collect()
            }
        }
    }
}

fn uid<K: Resource>(object: &K) -> String {
    object.meta().uid.clone().unwrap_or_default()
}

/// Keeps what stages are made of: a busy namespace has tens of thousands of events.
fn slim(event: Event) -> Event {
    let mut metadata = event.metadata;
    metadata.managed_fields = None;
    metadata.annotations = None;
    metadata.labels = None;
    Event {
        metadata,
        reporting_component: None,
        reporting_instance: None,
        related: None,
        action: None,
        ..event
    }
}
