//! How the service watches the Kubernetes API.

use kube::runtime::watcher;

/// After this many seconds the server ends a watch, and a new one begins. Five seconds later a watch without any data,
/// not even a bookmark, counts as dead: on some platforms connections fall silent.
const RECONNECT_SECONDS: u32 = 70;

/// A watch of all objects, which is begun anew before it could fall silent.
pub(crate) fn short_watch() -> watcher::Config {
    watcher::Config::default().timeout(RECONNECT_SECONDS)
}
