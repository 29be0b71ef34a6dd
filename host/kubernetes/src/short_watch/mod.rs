//! How the service watches the Kubernetes API, and what it reads of objects that anybody may write.

mod readable;
mod slim;

use std::fmt::Debug;

use futures::{Stream, StreamExt};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

pub use readable::{Readable, UnreadableObject};
pub use slim::event as slim_event;

/// After this many seconds the server ends a watch, and a new one begins. Five seconds later a watch without any data,
/// not even a bookmark, counts as dead: on some platforms connections fall silent.
const RECONNECT_SECONDS: u32 = 70;
/// How many objects are listed at once. Each may have a megabyte and more, and anybody's events are among them.
const PAGE: u32 = 100;

/// A watch of all objects, which is begun anew before it could fall silent.
pub fn short_watch() -> watcher::Config {
    watcher::Config::default().timeout(RECONNECT_SECONDS).page_size(PAGE)
}

/// The changes of objects, without those objects that cannot be read, and without the names of who changed which field. A watch that
/// fails is begun again.
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
