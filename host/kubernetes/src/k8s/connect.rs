//! Connects to a cluster.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::changing_client::ChangingClient;
use super::counted::counted;
use super::health::Health;
use super::rate_limiter::rate_limited;
use super::timed::timed;
use crate::leadership::Leadership;
use wasmspawner_telemetry::Metrics;

/// The clients of one cluster. Watches have a client of their own, because they hold connections for minutes and must
/// not delay requests.
#[derive(Clone)]
pub struct Connection {
    /// The client for requests.
    pub requests: Client,
    /// The client for watches.
    pub watches: Client,
    /// The health of the API, judged by the requests of both clients.
    pub health: Health,
    /// The URL of the API server. The one-machine cluster has none, and no accounts either.
    pub api_url: ApiUrl,
}

/// The URL of an API server, if it is known. Clones share it.
#[derive(Clone, Default)]
pub struct ApiUrl(Arc<RwLock<Option<String>>>);

impl ApiUrl {
    /// Returns the URL, or `None` if it is not known.
    pub fn get(&self) -> Option<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the URL.
    pub fn set(&self, url: String) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(url);
    }
}

/// An error that prevents a connection to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The service does not run in a cluster, and there is no usable kubeconfig.
    #[error(
        "there is no usable kubeconfig, and this is no pod of a cluster; name a kubeconfig in `kubernetes.kubeconfig`"
    )]
    Infer(#[source] kube::config::InferConfigError),
    /// The named kubeconfig cannot be used.
    #[error("the kubeconfig {path} cannot be used")]
    Kubeconfig {
        /// The kubeconfig file.
        path: String,
        /// The underlying error.
        #[source]
        source: kube::config::KubeconfigError,
    },
    /// The client cannot be built.
    #[error("cannot create a client from the cluster's configuration")]
    Client(#[source] kube::Error),
}

impl Connection {
    /// Creates a connection to a cluster in this process. Requests and watches share one client.
    pub fn in_process(client: Client) -> Self {
        Self {
            requests: client.clone(),
            watches: client,
            health: Health::default(),
            api_url: ApiUrl::default(),
        }
    }

    /// Creates a connection whose clients can be replaced. Its URL is not set.
    pub fn changing(requests: &ChangingClient, watches: &ChangingClient) -> Self {
        Self {
            requests: requests.client(),
            watches: watches.client(),
            health: Health::default(),
            api_url: ApiUrl::default(),
        }
    }

    /// Returns the same connection with clients that count their requests in the metrics.
    #[must_use]
    pub fn counted(self, metrics: &Metrics) -> Self {
        Self {
            requests: counted(self.requests.clone(), metrics.clone(), self.health.clone()),
            watches: counted(self.watches.clone(), metrics.clone(), self.health.clone()),
            ..self
        }
    }

    /// Connects to the cluster of a kubeconfig, of the environment, or of the pod that the service runs in.
    ///
    /// `silence` is the time after which a connection without data counts as dead. It must be longer than the timeout
    /// of watches, after which the server ends them. `per_second` limits the rate of requests, but not of watches. One
    /// request may take `request_timeout`; the time that it waits for the rate limiter does not count. Requests that change
    /// something fail unless `leadership` allows them.
    ///
    /// Also returns a client for the Lease of the service, which has no such limits: the Lease has to be renewed however
    /// much there is to do, and taken before this process leads.
    pub async fn open(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        silence: Duration,
        per_second: Option<NonZeroU32>,
        request_timeout: Duration,
        leadership: &Leadership,
        metrics: &Metrics,
    ) -> Result<(Self, Client), ConnectError> {
        let config = match kubeconfig {
            Some(path) => from_file(path, context).await?,
            None => kube::Config::infer().await.map_err(ConnectError::Infer)?,
        };
        let leases = client(&tuned(config.clone(), silence))?;
        let connection = Self::with(config, silence, per_second, request_timeout, leadership, metrics)?;
        Ok((connection, leases))
    }

    /// Connects to the cluster that `config` describes; see [`Self::open`].
    pub fn with(
        config: kube::Config,
        silence: Duration,
        per_second: Option<NonZeroU32>,
        request_timeout: Duration,
        leadership: &Leadership,
        metrics: &Metrics,
    ) -> Result<Self, ConnectError> {
        if config.accept_invalid_certs {
            tracing::warn!(
                "the Kubernetes API's certificate is not verified (insecure-skip-tls-verify): anyone in between can read and change requests"
            );
        }
        let api_url = ApiUrl::default();
        api_url.set(config.cluster_url.to_string());
        let config = tuned(config, silence);
        // The last moment before a request is sent counts.
        let mut requests = timed(leadership.guard(client(&config)?), request_timeout);
        if let Some(per_second) = per_second {
            requests = rate_limited(requests, per_second, metrics.clone());
        }
        Ok(Self { requests, watches: client(&config)?, health: Health::default(), api_url })
    }
}

fn tuned(mut config: kube::Config, silence: Duration) -> kube::Config {
    config.read_timeout = Some(silence);
    // Retries are made only in `retry`, which knows the operation's deadline.
    config.default_retry = false;
    config
}

fn client(config: &kube::Config) -> Result<Client, ConnectError> {
    Client::try_from(config.clone()).map_err(ConnectError::Client)
}

async fn from_file(path: &Path, context: Option<&str>) -> Result<kube::Config, ConnectError> {
    let failed = |source| ConnectError::Kubeconfig { path: path.display().to_string(), source };
    let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)
}
