use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArgoCd, FsGroup, LabService, NetworkPolicyConfig, ReadinessProbe, SiteSecret, UserFiles};
use crate::config::administrators::AdministratorLifts;
use crate::names::{DnsLabel, EnvName, LabelKey, ObjectName};

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
    /// Image for labs whose policies choose none.
    pub image: Option<String>,
    /// When the kubelet pulls an image.
    pub image_pull_policy: ImagePullPolicy,
    /// Replaces the image's entry point, unless a policy sets one. Kubernetes expands `$(NAME)` from the environment.
    pub command: Option<Vec<String>>,
    /// Replaces the image's arguments, unless a policy sets them. Kubernetes expands `$(NAME)` from the environment.
    pub args: Option<Vec<String>>,
    /// Absolute path of the working directory, unless a policy sets one. Default: that of the image. Template.
    pub working_dir: Option<String>,
    /// Environment variables of every lab. They override those of policies and of the request. Templates. `$(NAME)` is
    /// the value of the lab's variable of that name, unless that is a credential, and `$$` is `$`.
    pub env: BTreeMap<EnvName, String>,
    /// Labels on every object of a lab. Templates.
    pub labels: BTreeMap<LabelKey, String>,
    /// Annotations on every object of a lab. Templates.
    pub annotations: BTreeMap<LabelKey, String>,
    /// Annotations for Argo CD on every object of a lab; `null` for none.
    pub argo_cd: Option<ArgoCd>,
    /// The first lines of the lab's `/etc/passwd` and `/etc/group`.
    pub user_files: UserFiles,
    /// Text files in every lab, read-only, by their absolute path; at most 512 KiB together. A policy may mount a volume
    /// above them, and nothing else in their place.
    pub files: BTreeMap<String, String>,
    /// Keys of Secrets in the service's own namespace that are copied into every lab's Secret.
    pub secrets: Vec<SiteSecret>,
    /// Absolute path at which the user's token and the copied secrets are mounted as files; `null` to mount none.
    pub secrets_path: Option<String>,
    /// The network traffic that labs may receive and send.
    pub network_policy: NetworkPolicyConfig,
    /// A Service in front of each lab, so that it has a name; `null` for none.
    pub service: Option<LabService>,
    /// How the kubelet checks that a lab answers; `null` for no probe.
    pub readiness_probe: Option<ReadinessProbe>,
    /// Seconds between SIGTERM and SIGKILL when a lab's pod is deleted.
    pub termination_grace_period_seconds: u32,
    /// Variables of the request that neither a policy nor this configuration may replace. A `*` at the end stands for
    /// any characters.
    pub reserved_env: Vec<String>,
    /// Variables that are credentials, in addition to those whose name says so (`TOKEN`, `SECRET`, `PASSWORD`, ...) and
    /// to URLs with a password. Their values go into the lab's Secret and are never shown.
    pub credential_env: Vec<EnvName>,
    /// Treat every variable of the spawn request as a credential.
    pub request_env_is_secret: bool,
    /// The longest time limits that a policy may set.
    pub max_time_limits: MaxTimeLimits,
    /// Parts of the security baseline that are lifted for every lab of the site.
    pub security: SecurityLifts,
    /// Parts of the security baseline that policies may lift in labs of administrators. Each policy
    /// that does so needs the grant `administrators`, too. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub administrators: Option<AdministratorLifts>,
    /// A service account in the namespace of labs under which all labs run, unless a policy names another one. It is the
    /// operator's: the service never makes, changes or deletes it. Default: each lab has an account of its own, without
    /// permissions.
    pub service_account: Option<ObjectName>,
    /// The group to which the files of volumes are given.
    pub fs_group: FsGroup,
    /// Scheduler of the pod. Default: that of the cluster.
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
            files: BTreeMap::new(),
            secrets: Vec::new(),
            secrets_path: Some("/etc/wasmspawner/secrets".to_owned()),
            network_policy: NetworkPolicyConfig::default(),
            service: None,
            readiness_probe: Some(ReadinessProbe::default()),
            termination_grace_period_seconds: 30,
            reserved_env: RESERVED_ENV.map(str::to_owned).to_vec(),
            credential_env: Vec::new(),
            request_env_is_secret: false,
            max_time_limits: MaxTimeLimits::default(),
            security: SecurityLifts::default(),
            administrators: None,
            service_account: None,
            fs_group: FsGroup::default(),
            scheduler_name: None,
            priority_class_name: None,
            runtime_class_name: None,
        }
    }
}

/// Variables that a single-user server needs to reach and identify itself to its Hub (`Spawner.get_env`, JupyterHub
/// 6.1).
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
    /// When the node does not have it.
    #[default]
    IfNotPresent,
    /// Never; the image must be on the node.
    Never,
}

impl ImagePullPolicy {
    /// The policy as Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

/// The longest time limits that a policy may set, in seconds; `null` for any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MaxTimeLimits {
    /// Time limit of a spawn.
    pub spawn_seconds: Option<u32>,
    /// Time limit of a deletion.
    pub delete_seconds: Option<u32>,
}

impl Default for MaxTimeLimits {
    fn default() -> Self {
        Self { spawn_seconds: Some(3600), delete_seconds: Some(600) }
    }
}

/// Parts of the security baseline that are lifted for every lab of the site; none by default. If only an init container
/// needs a privilege, grant it to the policy (`policies[].grants`) instead.
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
    /// Pods ask for no `AppArmor` profile. Nodes without it, such as those with `SELinux`, refuse pods that do.
    pub no_app_armor: bool,
    /// Labs get a token of their service account.
    pub service_account_token: bool,
}
