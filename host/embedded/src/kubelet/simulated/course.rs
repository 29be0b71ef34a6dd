//! The course of one simulated pod: when its fault strikes, and what the kubelet says then.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::time::Instant;

use super::{
    run::SimulatedRun,
    script::{Fault, Script, ScriptError},
};
use crate::kubelet::{
    SimulatedOptions,
    probe::first_port,
    runtime::{Exit, ImageState, Role},
};

/// A pod's script and how often its fault has struck.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) script: Script,
    strikes: AtomicU32,
    /// The container that faults of containers are about.
    victim: Option<String>,
    /// Nothing ends any more.
    pub(crate) stuck: Arc<AtomicBool>,
}

impl Course {
    pub(crate) fn of(pod: &Pod, options: &SimulatedOptions) -> Result<Self, ScriptError> {
        let script = Script::of(pod, options)?;
        let spec = pod.spec.as_ref();
        let first = match script.fault {
            Some(Fault::InitFailure) => spec.and_then(|spec| spec.init_containers.as_ref()?.first()),
            _ => spec.and_then(|spec| spec.containers.first()),
        };
        let victim = script.container.clone().or_else(|| first.map(|container| container.name.clone()));
        let stuck = Arc::new(AtomicBool::new(script.fault == Some(Fault::StuckDeletion)));
        Ok(Self { script, strikes: AtomicU32::new(0), victim, stuck })
    }

    /// The course without its faults: for a pod whose annotations make no sense.
    pub(crate) fn plain(options: &SimulatedOptions) -> Self {
        Self {
            script: Script::plain(options),
            strikes: AtomicU32::new(0),
            victim: None,
            stuck: Arc::default(),
        }
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.script.fault == Some(fault)
    }

    /// Whether the fault strikes now; each time counts.
    pub(crate) fn strikes(&self, fault: Fault) -> bool {
        self.has(fault) && self.strikes.fetch_add(1, Ordering::Relaxed) < self.script.times
    }

    fn strikes_container(&self, fault: Fault, container: &str) -> bool {
        self.victim.as_deref() == Some(container) && self.strikes(fault)
    }

    pub(crate) fn image(&self, container: &Container) -> ImageState {
        let image = container.image.as_deref().unwrap_or_default();
        if self.strikes_container(Fault::InvalidImage, &container.name) {
            return ImageState::Invalid;
        }
        if self.strikes_container(Fault::ImageNeverPull, &container.name) {
            return ImageState::NeverPull;
        }
        if self.strikes_container(Fault::PullFailure, &container.name) {
            return ImageState::Unavailable {
                after: self.script.pull,
                message: format!(
                    "rpc error: code = NotFound desc = failed to pull and unpack image {image:?}: failed to resolve \
                     reference {image:?}: {image}: not found"
                ),
            };
        }
        if self.script.pull.is_zero() {
            ImageState::Present
        } else {
            ImageState::Pulls { after: self.script.pull }
        }
    }

    /// The message of a container that cannot be configured.
    pub(crate) fn config_error(&self, container: &Container, pod: &Pod) -> Option<String> {
        let secret = pod.metadata.name.as_deref().unwrap_or("missing");
        self.strikes_container(Fault::ConfigError, &container.name)
            .then(|| format!("secret {secret:?} not found"))
    }

    /// The message of a volume that cannot be mounted.
    pub(crate) fn mount_error(&self, pod: &Pod) -> Option<String> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let volume = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref()?.first());
        let volume = volume.map_or("data", |volume| volume.name.as_str());
        self.strikes(Fault::MountFailure)
            .then(|| format!("MountVolume.SetUp failed for volume {volume:?} : secret {name:?} not found"))
    }

    pub(crate) fn start(&self, container: &Container, role: Role) -> SimulatedRun {
        let now = Instant::now();
        let after = |delay: Duration, exit| Some((now + delay, exit));
        let name = &container.name;
        let end = match role {
            Role::Init if self.strikes_container(Fault::InitFailure, name) => {
                after(self.script.after, Exit::of_code(self.script.exit_code))
            }
            Role::Init => after(self.script.init, Exit::completed()),
            _ if self.strikes_container(Fault::CrashLoop, name) => {
                after(self.script.after, Exit::of_code(self.script.exit_code))
            }
            _ if self.strikes_container(Fault::Oom, name) => {
                after(self.script.after, Exit { reason: "OOMKilled", ..Exit::of_code(137) })
            }
            _ if self.strikes_container(Fault::Exit, name) => {
                after(self.script.after, Exit::of_code(self.script.exit_code))
            }
            _ => None,
        };
        self.run(end)
    }

    /// What a readiness probe complains about now.
    pub(crate) fn unready(&self, container: &Container, pod_ip: &str) -> Option<String> {
        let port = first_port(container).unwrap_or(8888);
        self.strikes_container(Fault::NotReady, &container.name).then(|| {
            format!("Get \"http://{pod_ip}:{port}/\": dial tcp {pod_ip}:{port}: connect: connection refused")
        })
    }

    /// A container that ran before the program was restarted goes on.
    pub(crate) fn resume(&self) -> SimulatedRun {
        self.run(None)
    }

    fn run(&self, end: Option<(Instant, Exit)>) -> SimulatedRun {
        SimulatedRun { end, stop: self.script.stop, stuck: self.stuck.clone(), asked: None }
    }
}
