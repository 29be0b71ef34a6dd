//! `embedded`: the one-machine cluster, which takes the place of a Kubernetes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lab::LabSection;
use super::{ImagesConfig, InvalidSetting};

/// The one-machine cluster. With this section, the service runs on that cluster instead of on a Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddedConfig {
    /// Address and port of the cluster's API server, for `kubectl`. Only a loopback address is accepted.
    pub listen: SocketAddr,
    /// What runs the containers.
    pub runtime: RuntimeKind,
    /// The local command for each image, for `runtime: process`. The first match wins.
    pub images: Vec<ImageMapping>,
    /// Durations of the stages, for `runtime: simulated`.
    pub simulated: SimulatedStages,
    /// Labs keep running when the service ends, and the next start adopts them.
    pub keep_labs: bool,
}

/// What runs the containers of the one-machine cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeKind {
    /// Local processes.
    #[default]
    Process,
    /// Nothing: pods only look as if they ran.
    Simulated,
}

/// The local command that stands for an image on this machine. Texts may contain `{mount:/path}` (the directory that is
/// mounted at `/path`), `{home}`, `{pod_ip}` and `{port}`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageMapping {
    /// Image references that this entry applies to; `*` stands for any characters.
    #[serde(rename = "match")]
    pub pattern: String,
    /// Names of the containers that this entry applies to: `notebook` is a lab's (`lab.container`), `kernel` that of a
    /// kernel, `dask-scheduler` and `dask-worker` those of a Dask pool. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<String>,
    /// The image's entry point.
    #[serde(default)]
    pub command: Vec<String>,
    /// The image's default arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// The image's environment. Variables of the pod override it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The image's working directory. Default: the home directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<PathBuf>,
    /// How the pod's own command and arguments are used.
    #[serde(default)]
    pub pod_command: PodCommand,
}

/// How the pod's own command and arguments are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PodCommand {
    /// They replace those of the image, as in Kubernetes.
    #[default]
    Wins,
    /// They are ignored, because their paths do not exist on this machine.
    Ignored,
}

/// Durations of the stages of a simulated pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SimulatedStages {
    /// Time until a node is found.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub schedule: SignedDuration,
    /// Time until the image is pulled; zero when every image is on the node already.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub pull: SignedDuration,
    /// Run time of an init container.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub init: SignedDuration,
    /// Time until a container is ready.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub ready: SignedDuration,
    /// Time until a container has ended.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub stop: SignedDuration,
}

impl Default for SimulatedStages {
    fn default() -> Self {
        Self {
            schedule: SignedDuration::ZERO,
            pull: SignedDuration::ZERO,
            init: SignedDuration::ZERO,
            ready: SignedDuration::from_secs(1),
            stop: SignedDuration::ZERO,
        }
    }
}

impl Default for EmbeddedConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8092),
            runtime: RuntimeKind::default(),
            images: Vec::new(),
            simulated: SimulatedStages::default(),
            keep_labs: false,
        }
    }
}

impl EmbeddedConfig {
    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        if self.listen.ip().is_loopback() {
            return Ok(());
        }
        Err(InvalidSetting::new(
            "embedded.listen",
            format!(
                "{} can be reached from outside; the one-machine cluster listens on 127.0.0.1 only",
                self.listen
            ),
        ))
    }

    /// What the one-machine cluster does not have.
    pub(super) fn missing(&self, lab: &LabSection, images: &ImagesConfig) -> Vec<InvalidSetting> {
        let is_process = self.runtime == RuntimeKind::Process;
        let prepulls = (is_process && images.prepull.is_some()).then(|| {
            InvalidSetting::new(
                "images.prepull",
                "the one-machine cluster runs local programs and pulls no images; remove it",
            )
        });
        let service = lab.service.as_ref().map(|_| {
            InvalidSetting::new(
                "lab.service",
                "the one-machine cluster has no Services and no names for them; remove it",
            )
        });
        prepulls.into_iter().chain(service).collect()
    }
}
