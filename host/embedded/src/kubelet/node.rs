//! The node: the state that its pods share, and its Node object, which the kubelet creates and keeps alive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as NodeObject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::addresses::{Addresses, HOST_IP};
use super::failure::is_gone;
use super::process::StateDirectory;
use super::restart::Backoff;
use super::volume::create_private;
use super::{BackoffOptions, KubeletOptions, OnShutdown, ProcessOptions, Runtime, SimulatedOptions};

/// The period of the node's heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(30);

pub(crate) struct Node {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) retry: Duration,
    pub(crate) backoff: BackoffOptions,
    pub(crate) on_shutdown: OnShutdown,
    pub(crate) runtime: NodeRuntime,
    addresses: Mutex<Addresses>,
    /// The images that simulated containers have used on this node.
    images: watch::Sender<BTreeSet<String>>,
}

/// The runtime of this node's containers.
#[derive(Debug)]
pub(crate) enum NodeRuntime {
    Process { options: Arc<ProcessOptions>, state: StateDirectory },
    Simulated(SimulatedOptions),
}

impl Node {
    pub(crate) fn new(client: Client, options: KubeletOptions) -> io::Result<Self> {
        let (runtime, on_shutdown) = match options.runtime {
            Runtime::Process(process) => {
                let state = StateDirectory::new(&process.state_dir);
                create_private(state.path())?;
                let on_shutdown = process.on_shutdown;
                (NodeRuntime::Process { options: Arc::new(process), state }, on_shutdown)
            }
            // A simulated runtime has no processes that could be left running.
            Runtime::Simulated(simulated) => (NodeRuntime::Simulated(simulated), OnShutdown::Keep),
        };
        let labels = [("hostname", options.node_name.as_str()), ("os", "linux"), ("arch", architecture())];
        Ok(Self {
            client,
            labels: labels.map(|(key, value)| (format!("kubernetes.io/{key}"), value.to_owned())).into(),
            name: options.node_name,
            retry: options.retry,
            backoff: options.backoff,
            on_shutdown,
            runtime,
            addresses: Mutex::new(Addresses::new(options.pod_addresses)),
            images: watch::Sender::default(),
        })
    }

    pub(crate) fn addresses(&self) -> MutexGuard<'_, Addresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an image to the node's status. Only the simulated runtime has images.
    pub(crate) fn has_image(&self, image: &str) {
        if let NodeRuntime::Simulated(_) = self.runtime {
            self.images.send_if_modified(|images| images.insert(image.to_owned()));
        }
    }

    /// Returns the waits between attempts to reach an unavailable API server.
    pub(crate) fn transient() -> Backoff {
        Backoff::new(BackoffOptions { base: Duration::from_millis(200), max: Duration::from_secs(10) })
    }

    /// Creates the Node object if it is missing, and reports the status periodically.
    pub(crate) async fn keep_registered(&self, shutdown: CancellationToken) {
        let since = Timestamp::now();
        let mut retry = Self::transient();
        let mut images = self.images.subscribe();
        loop {
            images.mark_unchanged();
            let wait = match self.report(since).await {
                Ok(()) => {
                    retry = Self::transient();
                    HEARTBEAT
                }
                Err(error) => {
                    tracing::warn!(node = self.name, %error, "the node could not report its status, trying again");
                    retry.advance()
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = images.changed() => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    async fn report(&self, since: Timestamp) -> Result<(), kube::Error> {
        let api: Api<NodeObject> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"metadata": {"labels": self.labels}, "status": self.status(since)}));
        match api.patch_status(&self.name, &PatchParams::default(), &patch).await {
            Ok(_) => return Ok(()),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
        let (name, labels) = (Some(self.name.clone()), Some(self.labels.clone()));
        let metadata = ObjectMeta { name, labels, ..ObjectMeta::default() };
        api.create(&PostParams::default(), &NodeObject { metadata, ..NodeObject::default() }).await?;
        api.patch_status(&self.name, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Returns the current status; `since` is the start of this kubelet.
    fn status(&self, since: Timestamp) -> Value {
        let runtime = match self.runtime {
            NodeRuntime::Process { .. } => "process",
            NodeRuntime::Simulated(_) => "simulated",
        };
        let version = env!("CARGO_PKG_VERSION");
        let images = self.images.borrow();
        let images: Vec<_> = images.iter().map(|image| json!({"names": [image], "sizeBytes": 0})).collect();
        json!({
            "images": images,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
                "lastHeartbeatTime": Time(Timestamp::now()), "lastTransitionTime": Time(since),
            }],
            "addresses": [
                {"type": "InternalIP", "address": HOST_IP},
                {"type": "Hostname", "address": self.name},
            ],
            "nodeInfo": {
                "architecture": architecture(), "operatingSystem": "linux",
                "kubeletVersion": format!("v{version}"),
                "containerRuntimeVersion": format!("{runtime}://{version}"),
                "bootID": "", "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "osImage": "",
                "systemUUID": "",
            },
        })
    }
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}
