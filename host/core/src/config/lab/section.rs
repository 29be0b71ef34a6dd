use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArgoCd, NetworkPolicyConfig, ReadinessProbe, SiteSecret, UserFiles};
use crate::names::{DnsLabel, EnvName, LabelKey};

/// What every lab of this site has. Strings marked *template* may contain the fields of the name templates, such as
/// `{username}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LabSection {
    /// Name of the lab's container.
    pub container: DnsLabel,
    /// Port the lab listens on.
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Image of labs for which no policy chooses one.
    pub image: Option<String>,
    /// When the kubelet pulls an image.
    pub image_pull_policy: ImagePullPolicy,
    /// Replaces the image's entry point unless a policy does. Kubernetes expands `$(NAME)` from the environment.
    pub command: Option<Vec<String>>,
    /// Replaces the image's arguments unless a policy does. Kubernetes expands `$(NAME)` from the environment.
    pub args: Option<Vec<String>>,
    /// Absolute path the lab starts in, unless a policy says; the image's when absent. Template.
    pub working_dir: Option<String>,
    /// Environment of every lab; wins over a policy and over the request. Templates.
    pub env: BTreeMap<EnvName, String>,
    /// Labels on every object of a lab. Templates.
    pub labels: BTreeMap<LabelKey, String>,
    /// Annotations on every object of a lab. Templates.
    pub annotations: BTreeMap<LabelKey, String>,
    /// Marks for Argo CD on every object of a lab; `null` for none.
    pub argo_cd: Option<ArgoCd>,
    /// The base of the lab's `/etc/passwd` and `/etc/group`.
    pub user_files: UserFiles,
    /// Keys of Secrets in the service's own namespace that are copied into every lab's Secret.
    pub secrets: Vec<SiteSecret>,
    /// Absolute path where the lab finds its token and the copied secrets as files; `null` to mount none.
    pub secrets_path: Option<String>,
    /// Who may reach a lab, and whom it may reach.
    pub network_policy: NetworkPolicyConfig,
    /// How the kubelet finds out that a lab answers; `null` for no probe.
    pub readiness_probe: Option<ReadinessProbe>,
    /// Seconds between the polite and the hard end of a lab.
    pub termination_grace_period_seconds: u32,
    /// Variables of the request that no policy and no configuration may replace. A `*` at the end stands for
    /// anything.
    pub reserved_env: Vec<String>,
    /// Variables that are credentials, beside all whose name says so (`TOKEN`, `SECRET`, `PASSWORD`, ...). They go
    /// to the lab's Secret and are never shown.
    pub credential_env: Vec<EnvName>,
    /// The longest time limits that a policy may set.
    pub max_time_limits: MaxTimeLimits,
    /// Which parts of the security baseline are lifted for every lab of the site.
    pub security: SecurityLifts,
    /// Scheduler of the pod; the cluster's default when absent.
    pub scheduler_name: Option<String>,
    /// Priority class of the pod.
    pub priority_class_name: Option<String>,
    /// Runtime class of the pod, for sandboxed runtimes such as gVisor.
    pub runtime_class_name: Option<String>,
}

impl Default for LabSection {
    fn default() -> Self {
        Self {
            container: DnsLabel::constant("notebook"),
            port: 8888,
            image: None,
            image_pull_policy: ImagePullPolicy::default(),
            command: None,
            args: None,
            working_dir: None,
            env: BTreeMap::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            argo_cd: Some(ArgoCd::default()),
            user_files: UserFiles::default(),
            secrets: Vec::new(),
            secrets_path: Some("/etc/wasmspawner/secrets".to_owned()),
            network_policy: NetworkPolicyConfig::default(),
            readiness_probe: Some(ReadinessProbe::default()),
            termination_grace_period_seconds: 30,
            reserved_env: RESERVED_ENV.map(str::to_owned).to_vec(),
            credential_env: Vec::new(),
            max_time_limits: MaxTimeLimits::default(),
            security: SecurityLifts::default(),
            scheduler_name: None,
            priority_class_name: None,
            runtime_class_name: None,
        }
    }
}

/// What a single-user server needs to reach its Hub and to know who it is (`Spawner.get_env` of JupyterHub 6.1).
const RESERVED_ENV: [&str; 13] = [
    "JPY_API_TOKEN",
    "JUPYTERHUB_ACTIVITY_URL",
    "JUPYTERHUB_API_*",
    "JUPYTERHUB_BASE_URL",
    "JUPYTERHUB_CLIENT_ID",
    "JUPYTERHUB_COOKIE_*",
    "JUPYTERHUB_HOST",
    "JUPYTERHUB_OAUTH_*",
    "JUPYTERHUB_PUBLIC_*",
    "JUPYTERHUB_SERVER_NAME",
    "JUPYTERHUB_SERVICE_*",
    "JUPYTERHUB_SSL_*",
    "JUPYTERHUB_USER",
];

/// When the kubelet pulls an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImagePullPolicy {
    /// At every start.
    Always,
    /// When the node lacks it.
    #[default]
    IfNotPresent,
    /// Never; the node must have it.
    Never,
}

impl ImagePullPolicy {
    /// As Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

/// The longest time limits that a policy may set, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MaxTimeLimits {
    /// For a spawn.
    pub spawn_seconds: u32,
    /// For a deletion.
    pub delete_seconds: u32,
}

impl Default for MaxTimeLimits {
    fn default() -> Self {
        Self { spawn_seconds: 3600, delete_seconds: 600 }
    }
}

/// Which parts of the security baseline are lifted for every lab of the site. Everything is off by default; what only
/// an init container needs belongs into a policy's grants instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, each named in the configuration")]
pub struct SecurityLifts {
    /// Labs may gain privileges, as `sudo` needs.
    pub privilege_escalation: bool,
    /// Labs keep the container runtime's default capabilities.
    pub default_capabilities: bool,
    /// Labs run without a seccomp profile.
    pub unconfined_seccomp: bool,
    /// Labs get a token of their service account.
    pub service_account_token: bool,
}
