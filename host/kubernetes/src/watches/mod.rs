//! Watches of the Kubernetes API, and the reading of objects that anybody may write.

mod readable;
mod slim;

use std::fmt::Debug;

use futures::{Stream, StreamExt};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

pub use readable::{Readable, UnreadableObject};
pub use slim::event as slim_event;

/// The number of seconds after which the server ends a watch and a new one begins. Five seconds later, a watch without
/// any data, not even a bookmark, counts as dead: on some platforms connections fall silent.
const RECONNECT_SECONDS: u32 = 70;
/// The number of objects on a page of a list. Each object may have a megabyte and more, and the events that anybody
/// writes are among them.
const PAGE: u32 = 100;

/// Returns the configuration of a watch of all objects that restarts before it could fall silent.
pub fn short_watch() -> watcher::Config {
    watcher::Config::default().timeout(RECONNECT_SECONDS).page_size(PAGE)
}

/// Streams the changes of objects, without their managed fields. Objects that cannot be read are left out. A watch that
/// fails is restarted.
pub fn changes<K>(
    api: Api<Readable<K>>,
    config: watcher::Config,
) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send
where
    K: Resource<DynamicType: Clone> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher(api, config)
        .default_backoff()
        .modify(|object| object.meta_mut().managed_fields = None)
        .filter_map(|change| std::future::ready(change.map(Readable::change).transpose()))
}
