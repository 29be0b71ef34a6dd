//! A reverse proxy between the service and its Kubernetes API server that fails as a test wants it to.
//!
//! The proxy listens for plain HTTP without credentials on its own address, and forwards requests with the credentials
//! of its upstream client. A [`Fault`] applies to all requests or to those that match a pattern, a number of times or
//! until it is removed. An outage closes all connections.

mod fault;
mod forward;
mod request;
mod watch;

pub use fault::{Fault, Rule};

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch as state;
use tokio::task::JoinSet;

use crate::service::own_address;

/// The port of the proxy.
const PORT: u16 = 6443;

/// A running proxy; it ends with the test's runtime.
#[derive(Clone)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    outage: Arc<state::Sender<bool>>,
    listening: state::Receiver<bool>,
}

/// State that is shared by connections and the test.
struct Shared {
    upstream: Client,
    rules: Mutex<Vec<Arc<Rule>>>,
    /// A signal that the rules have changed, on which open watches check them again.
    changed: state::Sender<()>,
    counts: Mutex<BTreeMap<String, usize>>,
}

impl Proxy {
    /// Starts a proxy for `upstream`.
    pub async fn start(upstream: Client) -> anyhow::Result<Self> {
        let address = SocketAddr::from((own_address(), PORT));
        let shared = Arc::new(Shared {
            upstream,
            rules: Mutex::default(),
            changed: state::Sender::new(()),
            counts: Mutex::default(),
        });
        let (outage, wanted) = state::channel(false);
        let (listens, listening) = state::channel(false);
        tokio::spawn(serve(address, Arc::clone(&shared), wanted, listens));
        let proxy = Self { address, shared, outage: Arc::new(outage), listening };
        proxy.set_outage(false).await?;
        Ok(proxy)
    }

    /// A kubeconfig for the proxy.
    pub fn kubeconfig(&self) -> String {
        let server = format!("http://{}", self.address);
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "proxy", "cluster": { "server": server } }],
            "users": [{ "name": "nobody", "user": {} }],
            "contexts": [{ "name": "proxy", "context": { "cluster": "proxy", "user": "nobody" } }],
            "current-context": "proxy",
        })
        .to_string()
    }

    /// Begins or ends an outage. During an outage open connections are closed and new ones are refused. Returns when
    /// the change is complete.
    pub async fn set_outage(&self, outage: bool) -> anyhow::Result<()> {
        self.outage.send_replace(outage);
        let mut listening = self.listening.clone();
        listening.wait_for(|listening| *listening != outage).await.context("the proxy has ended")?;
        Ok(())
    }

    /// Adds a rule, which also applies to open watches.
    pub fn add(&self, rule: Rule) -> Arc<Rule> {
        let rule = Arc::new(rule);
        self.shared.rules().push(Arc::clone(&rule));
        self.shared.changed.send_replace(());
        rule
    }

    /// Removes one rule.
    pub fn remove(&self, rule: &Arc<Rule>) {
        self.shared.rules().retain(|other| !Arc::ptr_eq(other, rule));
        self.shared.changed.send_replace(());
    }

    /// Removes all rules. A silenced watch stays silent, because the events that it missed are lost.
    pub fn clear(&self) {
        self.shared.rules().clear();
        self.shared.changed.send_replace(());
    }

    /// Returns the number of requests since the last call, by verb and kind (`create pods`), and resets it.
    pub fn take_counts(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut *self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    fn rules(&self) -> MutexGuard<'_, Vec<Arc<Rule>>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault that applies to a request, among those that `wanted` accepts.
    fn fault_for(&self, line: &str, wanted: impl Fn(&Fault) -> bool) -> Option<Fault> {
        let rules = self.rules();
        rules.iter().find(|rule| wanted(rule.fault()) && rule.hit(line)).map(|rule| rule.fault().clone())
    }

    fn count(&self, what: String) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
    }
}

/// Listens unless there is an outage.
async fn serve(
    address: SocketAddr,
    shared: Arc<Shared>,
    mut outage: state::Receiver<bool>,
    listens: state::Sender<bool>,
) {
    loop {
        if outage.wait_for(|outage| !outage).await.is_err() {
            return;
        }
        let Ok(listener) = TcpListener::bind(address).await else { return };
        listens.send_replace(true);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                ended = outage.wait_for(|outage| *outage) => {
                    if ended.is_err() {
                        return;
                    }
                    break;
                }
                Ok((stream, _)) = listener.accept() => {
                    let shared = Arc::clone(&shared);
                    connections.spawn(async move {
                        let answer = service_fn(move |request| forward::forward(Arc::clone(&shared), request));
                        // Connections are supposed to break here, so errors are ignored.
                        let _ = hyper::server::conn::http1::Builder::new()
                            .serve_connection(TokioIo::new(stream), answer)
                            .await;
                    });
                }
                Some(_) = connections.join_next() => {}
            }
        }
        drop(listener);
        connections.shutdown().await;
        listens.send_replace(false);
    }
}
