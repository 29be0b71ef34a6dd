//! A small Kubernetes API server: a store and the REST rules of Kubernetes, for the kinds in `resource`.
//!
//! [`ApiServer`] is a `tower::Service`. [`ApiServer::client`] makes a [`kube::Client`] of it in process, and
//! [`ApiServer::serve`] listens on loopback for `kubectl` and other clients.
//!
//! The server does not support authorization (every client with access may do everything), admission webhooks,
//! conversion between versions of custom kinds, owners of fields, YAML, protobuf beyond what `kubectl create` sends,
//! `exec`, `attach` and `port-forward`. It contains only the controllers that it cannot do without: garbage collection by
//! owner references, and the deletion of namespaces.

mod admission;
mod call;
mod cascade;
mod certificate;
mod deletion;
mod discovery;
mod failure;
mod input;
mod listen;
mod logs;
mod metadata;
mod names;
mod patch;
mod present;
mod protobuf;
mod resource;
mod route;
mod schema;
mod selector;
mod service;
mod store;
mod strategic;
mod table;
mod verbs;

pub use certificate::{Certificate, kubeconfig};
pub use listen::Access;
pub use logs::{LogError, LogRequest, LogStream, PodLogs};
pub use present::Body;

use resource::Registry;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use store::Store;
use store::disk::Disk;

/// The options of an API server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory that keeps the objects over a restart. It is created if it is missing. If `None`, objects are only
    /// in memory.
    pub state: Option<PathBuf>,
    /// The number of changes of each kind that are remembered for watches and paged lists. At least 1.
    pub watch_window: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { state: None, watch_window: 4096 }
    }
}

impl Options {
    /// Creates options that keep the objects in this directory.
    pub fn persistent(state: impl Into<PathBuf>) -> Self {
        Self { state: Some(state.into()), ..Self::default() }
    }
}

/// The state directory of an API server cannot be used; another process may hold it.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {}; is another process using it?", path.display())]
pub struct OpenError {
    path: PathBuf,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// A handle on an API server; clones share it.
#[derive(Clone)]
pub struct ApiServer(Arc<Server>);

/// The state that the handles share.
struct Server {
    store: Store,
    registry: Registry,
    logs: RwLock<Option<Arc<dyn PodLogs>>>,
}

impl Server {
    fn pod_logs(&self) -> Option<Arc<dyn PodLogs>> {
        self.logs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ApiServer {
    /// Opens an API server with its stored objects, or an empty one with the namespaces `default` and `kube-system`.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let disk = options.state.map(|directory| open_disk(&directory)).transpose()?;
        let server = Server {
            store: Store::new(options.watch_window.max(1), disk),
            registry: Registry::new(),
            logs: RwLock::new(None),
        };
        verbs::prepare(&server);
        Ok(Self(Arc::new(server)))
    }

    /// Returns a client that calls this server in process, as an administrator. Its default namespace is `default`.
    ///
    /// # Panics Panics outside of a tokio runtime, which the client needs.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Sets the source of pods' logs for later requests.
    pub fn set_pod_logs(&self, logs: Arc<dyn PodLogs>) {
        *self.0.logs.write().unwrap_or_else(PoisonError::into_inner) = Some(logs);
    }
}

fn open_disk(directory: &Path) -> Result<(Disk, store::disk::Found), OpenError> {
    let path = directory.join("apiserver.redb");
    let made = fs::create_dir_all(directory).map_err(Into::into);
    let opened = made.and_then(|()| Disk::open(&path));
    opened.map_err(|source| OpenError { path, source })
}
