//! The clusters with labs: the service's own, and those of targets elsewhere. Each has its own connection, watches and
//! pace, so a cluster that is slow or away does not delay the labs of others.

mod cluster;
mod credentials;

pub use cluster::Cluster;
pub use credentials::CredentialsProblem;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::custom_resource::environment::ClusterRef;
use wasmspawner_core::names::NamespaceName;

use crate::k8s::{Causes, ChangingClient, Connection, KubernetesError, SiteSecrets, StatusReason};
use crate::leadership::Leadership;
use crate::observed::Reach;
use credentials::kube_config;
use wasmspawner_telemetry::Metrics;

/// The interval at which the credentials of other clusters are read again, so that they can be replaced while the
/// service runs.
const READ_EVERY: Duration = Duration::from_secs(15);
/// The interval of these reads until the cluster has answered once.
const TRY_EVERY: Duration = Duration::from_secs(2);

/// The clusters with labs. Clones share them.
#[derive(Clone)]
pub struct Clusters {
    own: Cluster,
    others: Arc<Mutex<HashMap<ClusterRef, Other>>>,
    /// The number of other clusters. A change starts the following of the new ones.
    known: watch::Sender<usize>,
    settings: Arc<ClusterSettings>,
}

/// A callback for changes of a cluster's health. The argument is true while the cluster is away.
pub type OnHealth = Arc<dyn Fn(&ClusterRef, bool) + Send + Sync>;

/// The settings of connections to other clusters.
pub struct ClusterSettings {
    /// The Secrets with the credentials.
    pub secrets: SiteSecrets,
    /// The time after which a connection without data counts as dead.
    pub silence: Duration,
    /// The maximum number of requests per second, for each cluster.
    pub requests_per_second: Option<NonZeroU32>,
    /// The time limit of one request.
    pub request_timeout: Duration,
    /// The label selector for the objects of this installation.
    pub selector: String,
    /// Says whether this process may change anything.
    pub leadership: Leadership,
    /// The metrics in which the requests are counted.
    pub metrics: Metrics,
}

/// Another cluster, and its connection, which changes with its credentials.
#[derive(Clone)]
struct Other {
    cluster: Cluster,
    requests: ChangingClient,
    watches: ChangingClient,
    /// The outcome of the last reading of the credentials.
    credentials: watch::Sender<Option<Result<(), CredentialsProblem>>>,
}

impl Clusters {
    /// Creates a `Clusters` with the service's own cluster. Others are added when they are needed.
    pub fn new(own: Cluster, settings: ClusterSettings) -> Self {
        Self { own, others: Arc::default(), known: watch::Sender::new(0), settings: Arc::new(settings) }
    }

    /// The service's own cluster.
    pub fn own(&self) -> &Cluster {
        &self.own
    }

    /// Returns the cluster that is reached in this way, or the service's own for `None`. The cluster is followed from
    /// the first call on.
    pub fn get(&self, reference: Option<&ClusterRef>) -> Cluster {
        reference.map_or_else(|| self.own.clone(), |reference| self.other(reference).cluster)
    }

    fn other(&self, reference: &ClusterRef) -> Other {
        let mut others = self.others();
        if let Some(known) = others.get(reference) {
            return known.clone();
        }
        let other = Other::new(&self.own, &self.settings);
        others.insert(reference.clone(), other.clone());
        self.known.send_replace(others.len());
        other
    }

    /// Returns the outcome of the last reading of a cluster's credentials, as soon as they were read once.
    pub async fn credentials(&self, reference: &ClusterRef) -> Result<(), CredentialsProblem> {
        let credentials = self.other(reference).credentials;
        let mut read = credentials.subscribe();
        // The sender is alive, so waiting cannot fail.
        let outcome = read.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or(Ok(()))
    }

    /// Returns all clusters except the service's own.
    pub fn others_known(&self) -> Vec<(ClusterRef, Cluster)> {
        self.others().iter().map(|(reference, other)| (reference.clone(), other.cluster.clone())).collect()
    }

    /// Follows all clusters except the service's own, until `stop`. Calls `on_health` when a cluster is away, and when
    /// it answers again.
    pub async fn follow_others(&self, stop: &CancellationToken, on_health: OnHealth) {
        let (mut followed, mut tasks, mut known) = (Vec::new(), JoinSet::new(), self.known.subscribe());
        loop {
            known.borrow_and_update();
            let new: Vec<_> = self
                .others()
                .iter()
                .filter(|(reference, _)| !followed.contains(*reference))
                .map(|(reference, other)| (reference.clone(), other.clone()))
                .collect();
            for (reference, other) in new {
                followed.push(reference.clone());
                let (settings, stop, on_health) =
                    (Arc::clone(&self.settings), stop.clone(), Arc::clone(&on_health));
                tasks.spawn(async move {
                    let mut health = other.cluster.health().follow();
                    let telling = async {
                        while let Some(Ok(())) = stop.run_until_cancelled(health.changed()).await {
                            on_health(&reference, *health.borrow_and_update());
                        }
                    };
                    tokio::join!(other.clone().follow(&reference, &settings, &stop), telling);
                });
            }
            if stop.run_until_cancelled(known.changed()).await.is_none_or(|changed| changed.is_err()) {
                break;
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    fn others(&self) -> MutexGuard<'_, HashMap<ClusterRef, Other>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Other {
    fn new(own: &Cluster, settings: &ClusterSettings) -> Self {
        let (requests, watches) = (ChangingClient::default(), ChangingClient::default());
        let connection = Connection::changing(&requests, &watches).counted(&settings.metrics);
        let cluster = own.other(&connection, settings.request_timeout);
        Self { cluster, requests, watches, credentials: watch::Sender::new(None) }
    }

    /// Keeps the connection up to date with its credentials, and follows the objects in the cluster, until `stop`.
    async fn follow(self, reference: &ClusterRef, settings: &ClusterSettings, stop: &CancellationToken) {
        let found = watch::Sender::new(None);
        let watching = async {
            let mut reach = found.subscribe();
            let known = async { reach.wait_for(Option::is_some).await.ok().and_then(|reach| reach.clone()) };
            let Some(Some(reach)) = stop.run_until_cancelled(known).await else { return };
            let (store, client) = (&self.cluster.store, self.cluster.connection.watches.clone());
            tokio::join!(
                store.run(client.clone(), &reach, &settings.selector, stop),
                store.run_events(client.clone(), &reach, stop),
            );
        };
        tokio::join!(self.follow_credentials(reference, settings, &found, stop), watching);
    }

    async fn follow_credentials(
        &self,
        reference: &ClusterRef,
        settings: &ClusterSettings,
        found: &watch::Sender<Option<Reach>>,
        stop: &CancellationToken,
    ) {
        let mut used = None;
        loop {
            let outcome = self.connect(reference, settings, &mut used).await;
            let before = self.credentials.send_replace(Some(outcome.clone()));
            if let Err(problem) = &outcome
                && before.is_none_or(|before| before.as_ref().err() != Some(problem))
            {
                tracing::error!(secret = %reference.secret, %problem, "the credentials of a cluster cannot be used; labs there wait until they can");
            }
            let is_found = found.borrow().is_some();
            if let (false, Some(used)) = (is_found, &used) {
                found.send_replace(self.reach(settings, &used.namespace).await);
            }
            let pause = if found.borrow().is_some() { READ_EVERY } else { TRY_EVERY };
            if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    /// Reads the credentials, and connects anew if they have changed.
    async fn connect(
        &self,
        reference: &ClusterRef,
        settings: &ClusterSettings,
        used: &mut Option<Used>,
    ) -> Result<(), CredentialsProblem> {
        let data = settings.secrets.read(reference.secret.as_str()).await.map_err(|error| match error {
            KubernetesError::Refused { reason: StatusReason::NotFound, .. } => CredentialsProblem::NotFound,
            error => CredentialsProblem::Unreadable(Causes(&error).to_string()),
        })?;
        let invalid = |error: &dyn std::error::Error| CredentialsProblem::Invalid(Causes(error).to_string());
        if used.as_ref().is_some_and(|used| used.data == data) {
            return Ok(());
        }
        let config = kube_config(reference, &data).await.map_err(|error| invalid(&error))?;
        let namespace = config.default_namespace.clone();
        let ClusterSettings { silence, requests_per_second, request_timeout, leadership, metrics, .. } =
            settings;
        let connection =
            Connection::with(config, *silence, *requests_per_second, *request_timeout, leadership, metrics)
                .map_err(|error| invalid(&error))?;
        if let Some(url) = connection.api_url.get() {
            self.cluster.connection.api_url.set(url);
        }
        self.requests.replace(connection.requests);
        self.watches.replace(connection.watches);
        tracing::info!(secret = %reference.secret, "the credentials of a cluster are in use");
        *used = Some(Used { data, namespace });
        Ok(())
    }

    /// Finds the part of the cluster that the credentials show: all of it, or the one namespace that they name. Returns
    /// `None` while the cluster does not answer.
    async fn reach(&self, settings: &ClusterSettings, namespace: &str) -> Option<Reach> {
        let pods: Api<Pod> = Api::all(self.cluster.connection.requests.clone());
        let one = ListParams::default().labels(&settings.selector).limit(1);
        match pods.list(&one).await {
            Ok(_) => Some(Reach::Cluster),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                NamespaceName::parse(namespace).ok().map(Reach::Namespace)
            }
            Err(_) => None,
        }
    }
}

/// The credentials in use.
struct Used {
    data: BTreeMap<String, ByteString>,
    /// The namespace that they name.
    namespace: String,
}
