//! Starts the service and connects its modules. Only this module uses all others.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use jiff::SignedDuration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wasmspawner_core::config::auth::AuthMethod;
use wasmspawner_core::config::{Config, ConfigFile, NamespaceReclaim};
use wasmspawner_core::manifest::service_selector;

use crate::images::follow_images;
use crate::leading::{Election, lead};
use crate::one_machine::OneMachine;
pub use wasmspawner_api::ConfigSource;
use wasmspawner_api::auth::Authenticator;
use wasmspawner_api::{
    Api, ConfigReload, Connections, Description, FairUse, NubladoPrefix, Prefix, Tls, probes, router, serve,
};
use wasmspawner_history::{History, Retention};
use wasmspawner_hub::HubApi;
use wasmspawner_kubernetes::clusters::{Cluster, ClusterSettings, Clusters};
use wasmspawner_kubernetes::environments::Environments;
use wasmspawner_kubernetes::k8s::{
    Claims, ConfigMapRecords, Connection, RetainedNamespaces, SiteSecrets, WorkloadRequests,
    install_definitions,
};
use wasmspawner_kubernetes::leadership::Leadership;
use wasmspawner_kubernetes::records::SpawnRecords;
use wasmspawner_kubernetes::site_blueprints::SiteBlueprints;
use wasmspawner_kubernetes::workloads::Workloads;
use wasmspawner_policies::{EngineOptions, Policies, PolicySpec};
use wasmspawner_registry::Artifacts;
use wasmspawner_spawner::blueprint_providers::BlueprintProviders;
use wasmspawner_spawner::prepull::LivePrepulls;
use wasmspawner_spawner::{Clock, Context, HubComparison, Labs, LiveConfig, Provisioned, Volumes};
use wasmspawner_telemetry::{Metrics, Reload};

/// The time after which a connection to the Kubernetes API without data counts as dead. The API server ends watches
/// before that, after 70 s. A list that stalls leaves the service without news of the cluster for this long.
const SILENCE: Duration = Duration::from_secs(90);

/// The time for which operations on the children of labs are remembered, and the maximum number of these operations. A
/// kernel is of interest while somebody waits for it.
const CHILDREN_KEPT: SignedDuration = SignedDuration::from_hours(1);
const MAX_OPERATIONS_OF_CHILDREN: usize = 2_000;

/// The file of the history in the state directory.
const HISTORY_FILE: &str = "history.redb";

/// Runs the service until `stop` is cancelled. `file` and `config` were read from `source`.
pub async fn run(
    source: ConfigSource,
    file: ConfigFile,
    config: Config,
    metrics: Metrics,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    if let Some(state_dir) = &config.state_dir {
        private_directory(state_dir)?;
    }
    config.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    let (api, health) = (
        listen("http.listen", config.http.listen).await?,
        listen("http.health_listen", config.http.health_listen).await?,
    );
    let policies = load_policies(&config, &metrics).await?;
    let background = TaskTracker::new();
    let one_machine = match &config.embedded {
        Some(embedded) => Some(OneMachine::open(embedded, &config).await?),
        None => None,
    };
    // Nobody else can use the state directory of the one-machine cluster.
    let leadership = if one_machine.is_some() { Leadership::alone() } else { Leadership::by_lease() };
    let (connection, election) = connect(&config, one_machine.as_ref(), &leadership, &metrics).await?;
    let address_works = election.as_ref().and_then(Election::address_works);
    if config.embedded.is_some() {
        prepare_one_machine(&config, connection.requests.clone()).await?;
    }
    let hub =
        config.hub.clone().map(HubApi::new).transpose().context("hub: cannot set up HTTPS")?.map(Arc::new);
    let authenticator = Authenticator::new(config.auth.clone(), hub.clone()).await?;
    let labs =
        Labs::new(Arc::new(context(config, policies, hub, &connection, &leadership, metrics.clone())?));
    check_installed(labs.context()).await?;
    let used = labs.context().config.current();
    let http = used.http.clone();
    let prefix = Prefix::from_config(&http);
    write_address(&used, &api, &prefix)?;
    let tls = http.tls.clone().map(Tls::open).transpose()?;
    let connections =
        Connections::to_api(&http, used.auth.trusted_peers(), tls.as_ref()).context("http.tls")?;
    let address = api.local_addr()?;

    // The one-machine cluster must outlive the drivers that work on it.
    let cluster_stop = CancellationToken::new();
    if let Some(tls) = tls.clone() {
        let stop = stop.clone();
        background.spawn(async move { tls.follow(stop).await });
    }
    if let Some(one_machine) = one_machine {
        background.spawn(one_machine.run(cluster_stop.clone()));
    }
    follow_images(&background, labs.context(), &connection, &stop);
    let prepulls = LivePrepulls::default();
    // The former ends event streams, the latter closes the ports.
    let (handed_over, closed) = (CancellationToken::new(), CancellationToken::new());
    let reload = ConfigReload::new(source, file, labs.clone(), authenticator.clone());
    let state = Api {
        fair_use: FairUse::new(used.limits.per_user),
        labs: labs.clone(),
        authenticator,
        config: reload.clone(),
        prepulls: prepulls.clone(),
        metrics: metrics.clone(),
        description: Description::for_config(&http).context("cannot describe the API")?,
        prefix,
        nublado_prefix: NubladoPrefix::from_config(&http),
        shutdown: handed_over.clone(),
    };
    tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "the service listens");
    let leading = async {
        let _ended = (handed_over.clone().drop_guard(), closed.clone().drop_guard());
        match Box::pin(lead(election, &labs, &connection, prepulls, &background, &stop)).await {
            Some(led) => {
                let history = &labs.context().history;
                led.end(&cluster_stop, &background, history, &handed_over, &closed).await
            }
            None => Ok(()),
        }
    };
    let everything = async {
        let ((), (), reloading, (), (), led) = tokio::join!(
            serve(api, connections, router(state, &http.dialects, http.max_body_bytes), closed.clone()),
            serve(
                health,
                Connections::to_health(),
                probes(labs.clone(), address_works, metrics),
                closed.clone()
            ),
            reload_on_hangup(&reload, &stop),
            reload.follow(stop.clone()),
            async {
                let policies = &labs.context().policies;
                tokio::join!(policies.follow_data(stop.clone()), policies.deliver_events(stop.clone()));
            },
            leading,
        );
        reloading.context("cannot install the handler of SIGHUP")?;
        led
    };
    let ended = tokio::select! {
        ended = everything => ended,
        () = leadership.lost() => Err(anyhow!("another process of the service leads; this one ends, and stands by when it is started again")),
    };
    labs.context().history.flush(jiff::Timestamp::now());
    ended?;
    tracing::info!("the service has ended");
    Ok(())
}

/// Makes what the one-machine cluster and its users need: the file of tokens, and the definitions of custom resources.
async fn prepare_one_machine(config: &Config, requests: kube::Client) -> anyhow::Result<()> {
    make_tokens_file(config)?;
    install_definitions(requests).await.context("the one-machine cluster refuses a kind of the service's own")
}

/// Fails if a custom resource that the configuration needs is not installed.
async fn check_installed(context: &Context) -> anyhow::Result<()> {
    context.records.check_installed().await?;
    context.blueprints.check_installed().await?;
    if let Some(environments) = &context.environments {
        environments.check_installed().await?;
    }
    Ok(())
}

fn context(
    config: Config,
    policies: Policies,
    hub: Option<Arc<HubApi>>,
    connection: &Connection,
    leadership: &Leadership,
    metrics: Metrics,
) -> anyhow::Result<Context> {
    let request_timeout = Duration::try_from(config.kubernetes.request_timeout)?;
    let client = connection.requests.clone();
    let keep = Retention { span: config.limits.history, operations: config.limits.history_operations };
    let history = match (&config.history, &config.state_dir) {
        (Some(nats), state_dir) => {
            let file = state_dir.as_ref().map(|state_dir| state_dir.join(HISTORY_FILE));
            if let Some(file) = file.filter(|file| file.exists()) {
                tracing::warn!(file = %file.display(), "history.nats: the history in this file is not taken over; delete it once nobody needs it");
            }
            let leadership = leadership.clone();
            History::in_nats(nats.clone(), &config.kubernetes.instance(), keep, move || {
                leadership.may_change()
            })
        }
        (None, Some(state_dir)) => History::open(&state_dir.join(HISTORY_FILE), keep)?,
        (None, None) => History::in_memory(keep),
    };
    let of_children = Retention {
        span: keep.span.min(CHILDREN_KEPT),
        operations: keep.operations.min(MAX_OPERATIONS_OF_CHILDREN),
    };
    let forgotten = config.hub.as_ref().map(|hub| hub.forgotten.clone());
    let hub = hub.zip(forgotten).map(|(api, rules)| HubComparison::new(api, rules));
    let namespace = config.kubernetes.namespace.as_str();
    let instance = &config.kubernetes.instance();
    let records = |name| ConfigMapRecords::new(client.clone(), namespace, instance, name, request_timeout);
    let claims = || Claims::new(client.clone(), request_timeout);
    let volumes = || Volumes::new(records("wasmspawner-volumes"), claims(), instance.clone());
    let secrets = SiteSecrets::new(client.clone(), namespace, request_timeout);
    let mut own = Cluster::own(connection, config.kubernetes.namespaces, request_timeout);
    if config.kubernetes.namespaces == NamespaceReclaim::Retain {
        let named = config.lab_namespaces.named().to_vec();
        own.creator =
            own.creator.in_retained(RetainedNamespaces::new(records("wasmspawner-namespaces"), named));
    }
    let clusters = Clusters::new(
        own,
        ClusterSettings {
            secrets: secrets.clone(),
            silence: SILENCE,
            requests_per_second: config.kubernetes.requests_per_second,
            request_timeout,
            selector: service_selector(instance),
            leadership: leadership.clone(),
            metrics: metrics.clone(),
        },
    );
    let environments = config.environments.is_some().then(|| {
        let namespace = config.kubernetes.namespace.clone();
        Environments::new(connection, clusters.clone(), namespace, instance.clone(), request_timeout)
    });
    let blueprints = if config.blueprint_objects {
        SiteBlueprints::with_objects(connection, namespace, request_timeout)
    } else {
        SiteBlueprints::configured()
    };
    let namespaces = config.workloads.namespaces.clone();
    let workloads = (!namespaces.is_empty())
        .then(|| Workloads::new(WorkloadRequests::new(client.clone(), request_timeout), namespaces));
    Ok(Context {
        workloads,
        policies,
        blueprints,
        blueprint_providers: BlueprintProviders::default(),
        clusters,
        environments,
        history,
        history_of_children: History::in_memory(of_children),
        records: SpawnRecords::new(
            client.clone(),
            namespace,
            instance.clone(),
            request_timeout,
            leadership.clone(),
        ),
        clock: Clock::start(),
        secrets,
        provisioned: Provisioned::new(records("wasmspawner-provisioned")),
        hub,
        volumes: (!config.kubernetes.namespaces.is_deleted()).then(volumes),
        metrics,
        spawn_slots: Arc::new(Semaphore::new(config.limits.concurrent_spawns)),
        config: LiveConfig::new(config),
    })
}

/// Connects to the cluster. There is an election unless the cluster is in this process.
async fn connect(
    config: &Config,
    one_machine: Option<&OneMachine>,
    leadership: &Leadership,
    metrics: &Metrics,
) -> anyhow::Result<(Connection, Option<Election>)> {
    if let Some(one_machine) = one_machine {
        return Ok((Connection::in_process(one_machine.client()).counted(metrics), None));
    }
    let kubernetes = &config.kubernetes;
    let (kubeconfig, context) = (kubernetes.kubeconfig.as_deref(), kubernetes.context.as_deref());
    let request_timeout = Duration::try_from(kubernetes.request_timeout)?;
    let per_second = kubernetes.requests_per_second;
    let (connection, leases) =
        Connection::open(kubeconfig, context, SILENCE, per_second, request_timeout, leadership, metrics)
            .await?;
    let connection = connection.counted(metrics);
    let election = Election::new(config, &connection, leases, leadership)?;
    Ok((connection, Some(election)))
}

/// Loads the chain of policies. If one of them cannot be loaded, the service starts all the same: labs that run have to be
/// shown and stopped.
pub(crate) async fn load_policies(config: &Config, metrics: &Metrics) -> anyhow::Result<Policies> {
    let specs = PolicySpec::all(&config.policies)?;
    let (counted, compared) = (metrics.clone(), metrics.clone());
    let options = EngineOptions {
        cache: config.state_dir.as_deref().map(compiled_policies),
        artifacts: Artifacts::new(config.registries.clone()),
        on_call: Arc::new(move |call| {
            counted.policy_called(call.policy.as_str(), call.hook.name(), call.outcome, call.duration);
        }),
        on_compared: Arc::new(move |policy, hook, kind| {
            compared.policy_compared(policy.as_str(), hook.name(), kind);
        }),
        ..EngineOptions::default()
    };
    let (policies, failed) = Policies::open(specs, options).await?;
    if let Some(error) = failed {
        tracing::error!(%error, "a policy cannot be loaded, so no lab can be started; it is tried again");
    }
    if policies.problem().is_some() {
        metrics.reloaded(Reload::Failed);
    }
    Ok(policies)
}

fn compiled_policies(state_dir: &Path) -> PathBuf {
    state_dir.join("compiled-policies")
}

async fn listen(key: &str, address: std::net::SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "{key}: cannot listen on {address}; choose another port, or stop the program that uses this one"
        )
    })
}

/// Creates the state directory. It holds secrets, so only its owner may read it.
fn private_directory(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("the state directory {} cannot be made", path.display()))?;
    if std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).is_err() {
        tracing::warn!(
            path = %path.display(),
            "cannot set the mode of the state directory to 0700, so others may read it; the service's user must own it"
        );
    }
    Ok(())
}

/// Creates an empty file of tokens for the one-machine mode. `wasmspawner token` adds to it while the service runs.
fn make_tokens_file(config: &Config) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let of_file = |method: &AuthMethod| match method {
        AuthMethod::Static(tokens) => Some(tokens.tokens_file.clone()),
        AuthMethod::JupyterHub(_) | AuthMethod::Headers(_) | AuthMethod::Oidc(_) => None,
    };
    let Some(tokens_file) = config.auth.methods.iter().find_map(of_file) else { return Ok(()) };
    let made = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&tokens_file);
    made.map(drop)
        .with_context(|| format!("auth.static.tokens_file: {} cannot be made", tokens_file.display()))
}

/// The file of the state directory into which a one-machine service writes the URL of its API.
pub(crate) const ADDRESS_FILE: &str = "api.url";

/// Writes the API's URL into the state directory, where `wasmspawner labs --state-dir` finds it.
fn write_address(config: &Config, api: &TcpListener, prefix: &Prefix) -> anyhow::Result<()> {
    let (Some(state_dir), Some(_)) = (&config.state_dir, &config.embedded) else { return Ok(()) };
    let file = state_dir.join(ADDRESS_FILE);
    let scheme = if config.http.tls.is_some() { "https" } else { "http" };
    std::fs::write(&file, format!("{scheme}://{}{}\n", api.local_addr()?, prefix.as_str()))
        .with_context(|| format!("{} cannot be written", file.display()))
}

/// The exit code of a program that SIGINT ended (128 + 2).
const EXIT_AT_ONCE: i32 = 130;

/// Returns a token that SIGINT and SIGTERM cancel. The second such signal ends the process at once.
pub fn termination() -> std::io::Result<CancellationToken> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let stop = CancellationToken::new();
    let cancel = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("the service is asked to end; asked again, it ends at once");
        cancel.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::warn!("the service ends at once; the next start finds what it left running");
        std::process::exit(EXIT_AT_ONCE);
    });
    Ok(stop)
}

/// Reads the configuration and the policies again on SIGHUP.
async fn reload_on_hangup(reload: &ConfigReload, stop: &CancellationToken) -> std::io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    while stop.run_until_cancelled(hangup.recv()).await.flatten().is_some() {
        stop.run_until_cancelled(reload.reload_and_log()).await;
    }
    Ok(())
}
