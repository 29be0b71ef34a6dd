//! The options of a kubelet.

use std::path::PathBuf;
use std::time::Duration;

use super::{AddressRange, BackoffOptions, ImageCommand};

/// The options of a [`Kubelet`](super::Kubelet). [`KubeletOptions::new`] sets the defaults.
#[derive(Debug, Clone)]
pub struct KubeletOptions {
    /// The name of its Node object and the `spec.nodeName` of its pods.
    pub node_name: String,
    /// The range of the pods' addresses. Default `127.101.0.0/16`.
    pub pod_addresses: AddressRange,
    /// The waits between restarts of a container and between attempts to pull an image.
    pub backoff: BackoffOptions,
    /// The time until a container that could not be configured, a volume that could not be mounted or a pod that could
    /// not be scheduled is tried again. Default 10 s.
    pub retry: Duration,
    /// The runtime of the containers.
    pub runtime: Runtime,
}

impl KubeletOptions {
    /// Creates the default options for a node of this name.
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

/// The runtime of the containers.
#[derive(Debug, Clone)]
pub enum Runtime {
    /// Local processes.
    Process(ProcessOptions),
    /// A simulation: containers only look as if they ran. See `README.md` for the faults that annotations can cause.
    Simulated(SimulatedOptions),
}

/// Options of the process runtime.
#[derive(Debug, Clone)]
pub struct ProcessOptions {
    /// Directory for volumes, claims, logs and process records. Created with mode 0700.
    pub state_dir: PathBuf,
    /// The local commands that stand for images; the first match wins.
    pub images: Vec<ImageCommand>,
    /// The treatment of the processes when the kubelet is shut down. Default [`OnShutdown::Kill`].
    pub on_shutdown: OnShutdown,
}

impl ProcessOptions {
    /// Creates the default options with this state directory.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        let on_shutdown = OnShutdown::default();
        Self { state_dir: state_dir.into(), images: Vec::new(), on_shutdown }
    }
}

/// The treatment of the processes when the kubelet is shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnShutdown {
    /// The processes end (TERM, at most 10 s, KILL) and their pods fail with reason `Terminated`, as when a node shuts
    /// down.
    #[default]
    Kill,
    /// The processes continue; the next kubelet with the same state directory adopts them.
    Keep,
}

/// The durations of the simulated runtime, all zero by default. A pod's annotations override them.
#[derive(Debug, Clone, Copy, Default)]
pub struct SimulatedOptions {
    /// The time from the pod's creation to its binding.
    pub schedule: Duration,
    /// The time to pull an image that the node does not have; zero means that every image is present.
    pub pull: Duration,
    /// The duration of an init container's run.
    pub init: Duration,
    /// The time from the start of a container to its readiness.
    pub ready: Duration,
    /// The time from the TERM signal to the end of a container.
    pub stop: Duration,
}
