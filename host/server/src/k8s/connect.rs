//! Reaching a cluster.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::counted::counted;
use super::health::Health;
use super::rate_limiter::paced;
use super::timed::timed;
use crate::telemetry::Metrics;

/// The clients of one cluster. Watches have one of their own: they hold connections for minutes, and must not keep
/// requests waiting.
#[derive(Clone)]
pub struct Connection {
    /// For requests.
    pub requests: Client,
    /// For watches.
    pub watches: Client,
    /// Whether the API answers.
    pub health: Health,
}

/// No cluster can be reached with this configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither inside a cluster nor a usable kubeconfig.
    #[error(
        "there is no usable kubeconfig, and this is no pod of a cluster; name a kubeconfig in `kubernetes.kubeconfig`"
    )]
    Infer(#[source] kube::config::InferConfigError),
    /// The named kubeconfig is no good.
    #[error("the kubeconfig {path} cannot be used")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong with it.
        #[source]
        source: kube::config::KubeconfigError,
    },
    /// The client cannot be built.
    #[error("no client can be made of the cluster's configuration")]
    Client(#[source] kube::Error),
}

impl Connection {
    /// One client for both, as for a cluster in this process.
    pub fn in_process(client: Client) -> Self {
        Self { requests: client.clone(), watches: client, health: Health::default() }
    }

    /// The same, counting what is asked.
    #[must_use]
    pub fn counted(self, metrics: &Metrics) -> Self {
        Self {
            requests: counted(self.requests, metrics.clone(), self.health.clone()),
            watches: counted(self.watches, metrics.clone(), self.health.clone()),
            health: self.health,
        }
    }

    /// Connects to the cluster of a kubeconfig, of the environment, or of the pod this runs in. `silence` is the time
    /// after which a connection that brings nothing is taken for dead; the server is asked to end watches before that.
    /// Watches aside, the API is asked at most `per_second` times a second, and one request may take `request_timeout`,
    /// counted from its turn.
    pub async fn open(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        silence: Duration,
        per_second: Option<NonZeroU32>,
        request_timeout: Duration,
    ) -> Result<Self, ConnectError> {
        let mut config = match kubeconfig {
            Some(path) => from_file(path, context).await?,
            None => kube::Config::infer().await.map_err(ConnectError::Infer)?,
        };
        if config.accept_invalid_certs {
            tracing::warn!(
                "the Kubernetes API's certificate is not verified (insecure-skip-tls-verify): whoever is between can read and change everything"
            );
        }
        config.read_timeout = Some(silence);
        // Retries are in one place: in `retry`, which knows the operation's deadline.
        config.default_retry = false;
        let requests = Client::try_from(config.clone()).map_err(ConnectError::Client)?;
        let mut requests = timed(requests, request_timeout);
        if let Some(per_second) = per_second {
            requests = paced(requests, per_second);
        }
        let watches = Client::try_from(config).map_err(ConnectError::Client)?;
        Ok(Self { requests, watches, health: Health::default() })
    }
}

async fn from_file(path: &Path, context: Option<&str>) -> Result<kube::Config, ConnectError> {
    let failed = |source| ConnectError::Kubeconfig { path: path.display().to_string(), source };
    let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)
}
