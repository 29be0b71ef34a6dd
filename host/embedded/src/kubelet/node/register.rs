//! The Node object: what is in it, and keeping it there and alive.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as NodeObject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Node, NodeRuntime};
use crate::kubelet::addresses::HOST_IP;
use crate::kubelet::failure::is_gone;

/// How often the node reports that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Creates the object when it is missing and reports the status, again and again.
pub(crate) async fn keep_registered(node: Arc<Node>, shutdown: CancellationToken) {
    let api: Api<NodeObject> = Api::all(node.client.clone());
    let since = node.clock.now();
    let mut retry = Node::transient();
    loop {
        let wait = match report(&api, &node, since).await {
            Ok(()) => {
                retry = Node::transient();
                HEARTBEAT
            }
            Err(error) => {
                tracing::warn!(node = node.name, %error, "the node could not report its status, trying again");
                retry.advance()
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

async fn report(api: &Api<NodeObject>, node: &Node, since: Timestamp) -> Result<(), kube::Error> {
    let status = status(node, since, node.clock.now());
    let patch = Patch::Strategic(json!({"metadata": {"labels": node.labels}, "status": status}));
    match api.patch_status(&node.name, &PatchParams::default(), &patch).await {
        Ok(_) => return Ok(()),
        Err(error) if is_gone(&error) => {}
        Err(error) => return Err(error),
    }
    let metadata = ObjectMeta {
        name: Some(node.name.clone()),
        labels: Some(node.labels.clone()),
        ..ObjectMeta::default()
    };
    api.create(&PostParams::default(), &NodeObject { metadata, ..NodeObject::default() }).await?;
    api.patch_status(&node.name, &PatchParams::default(), &patch).await.map(drop)
}

/// Labels that every node has.
pub(super) fn own_labels(name: &str) -> [(String, String); 3] {
    let arch = architecture().to_owned();
    [("hostname", name.to_owned()), ("os", "linux".to_owned()), ("arch", arch)]
        .map(|(key, value)| (format!("kubernetes.io/{key}"), value))
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The status at `now`; `since` is when this kubelet began.
fn status(node: &Node, since: Timestamp, now: Timestamp) -> Value {
    let resources = json!({
        "cpu": format!("{}m", node.capacity.cpu_milli),
        "memory": node.capacity.memory.to_string(),
        "pods": node.capacity.pods.to_string(),
    });
    let runtime = match node.runtime {
        NodeRuntime::Process { .. } => "process",
        NodeRuntime::Simulated(_) => "simulated",
    };
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "capacity": resources, "allocatable": resources,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
            "lastHeartbeatTime": Time(now), "lastTransitionTime": Time(since),
        }],
        "addresses": [
            {"type": "InternalIP", "address": HOST_IP},
            {"type": "Hostname", "address": node.name},
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
