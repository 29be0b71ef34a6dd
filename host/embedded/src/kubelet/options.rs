//! The options of a kubelet.

use std::path::PathBuf;
use std::time::Duration;

use super::{AddressRange, BackoffOptions, ImageCommand};

/// The options of a [`Kubelet`](super::Kubelet). [`KubeletOptions::new`] has the defaults.
#[derive(Debug, Clone)]
pub struct KubeletOptions {
    /// The name of its Node object and the `spec.nodeName` of its pods.
    pub node_name: String,
    /// Where pods get their addresses from. Default `127.101.0.0/16`.
    pub pod_addresses: AddressRange,
    /// Waits between restarts of a container and between attempts to pull an image.
    pub backoff: BackoffOptions,
    /// How long until a container that could not be configured, a volume that could not be mounted or a pod that
    /// could not be scheduled is tried again. Default 10 s.
    pub retry: Duration,
    /// What runs the containers.
    pub runtime: Runtime,
}

impl KubeletOptions {
    /// The defaults for a node of this name.
    pub fn new(node_name: impl Into<String>, runtime: Runtime) -> Self {
        Self {
            node_name: node_name.into(),
            pod_addresses: AddressRange::default(),
            backoff: BackoffOptions::default(),
            retry: Duration::from_secs(10),
            runtime,
        }
    }
}

/// What runs the containers.
#[derive(Debug, Clone)]
pub enum Runtime {
    /// Local processes.
    Process(ProcessOptions),
    /// Nothing: containers only look as if they ran, see `README.md` for the faults that annotations choose.
    Simulated(SimulatedOptions),
}

/// Options of the process runtime.
#[derive(Debug, Clone)]
pub struct ProcessOptions {
    /// Directory for volumes, claims, logs and process records. Created with mode 0700.
    pub state_dir: PathBuf,
    /// What images mean here; the first match wins.
    pub images: Vec<ImageCommand>,
    /// What becomes of the processes when the kubelet is shut down. Default [`OnShutdown::Kill`].
    pub on_shutdown: OnShutdown,
}

impl ProcessOptions {
    /// The defaults with this state directory.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        let on_shutdown = OnShutdown::default();
        Self { state_dir: state_dir.into(), images: Vec::new(), on_shutdown }
    }
}

/// What becomes of the processes when the kubelet is shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnShutdown {
    /// They end (TERM, at most 10 s, KILL) and their pods fail with reason `Terminated`, as when a node shuts down.
    #[default]
    Kill,
    /// They stay; the next kubelet with the same state directory adopts them.
    Keep,
}

/// Durations of the simulated runtime, all zero by default; a pod's annotations override them.
#[derive(Debug, Clone, Copy, Default)]
pub struct SimulatedOptions {
    /// From the pod's creation to its binding.
    pub schedule: Duration,
    /// Pulling an image that the node does not have; zero means that every image is present.
    pub pull: Duration,
    /// The run of an init container.
    pub init: Duration,
    /// From the start of a container to its readiness.
    pub ready: Duration,
    /// From the TERM signal to the end of a container.
    pub stop: Duration,
}
