//! The Node object: what is in it, and keeping it there and alive.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node as NodeObject, NodeAddress, NodeCondition, NodeStatus, NodeSystemInfo},
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{ObjectMeta, Time},
    },
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{HOST_IP, Node, NodeRuntime};
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

async fn report(api: &Api<NodeObject>, node: &Node, since: jiff::Timestamp) -> Result<(), kube::Error> {
    let status = status(node, since, node.clock.now());
    let patch = Patch::Strategic(json!({"metadata": {"labels": node.labels}, "status": status}));
    match api.patch_status(&node.name, &PatchParams::default(), &patch).await {
        Ok(_) => return Ok(()),
        Err(error) if is_gone(&error) => {}
        Err(error) => return Err(error),
    }
    api.create(&PostParams::default(), &object(node)).await?;
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

/// The object without its status.
fn object(node: &Node) -> NodeObject {
    NodeObject {
        metadata: ObjectMeta {
            name: Some(node.name.clone()),
            labels: Some(node.labels.clone()),
            ..ObjectMeta::default()
        },
        ..NodeObject::default()
    }
}

/// The status at `now`; `since` is when this kubelet began.
fn status(node: &Node, since: Timestamp, now: Timestamp) -> NodeStatus {
    let capacity: BTreeMap<String, Quantity> = [
        ("cpu", format!("{}m", node.capacity.cpu_milli)),
        ("memory", node.capacity.memory.to_string()),
        ("pods", node.capacity.pods.to_string()),
    ]
    .map(|(resource, amount)| (resource.to_owned(), Quantity(amount)))
    .into();
    let ready = NodeCondition {
        type_: "Ready".to_owned(),
        status: "True".to_owned(),
        reason: Some("KubeletReady".to_owned()),
        message: Some("kubelet is posting ready status".to_owned()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: Some(Time(since)),
    };
    let address = |kind: &str, address: String| NodeAddress { type_: kind.to_owned(), address };
    NodeStatus {
        allocatable: Some(capacity.clone()),
        capacity: Some(capacity),
        conditions: Some(vec![ready]),
        addresses: Some(vec![
            address("InternalIP", HOST_IP.to_string()),
            address("Hostname", node.name.clone()),
        ]),
        node_info: Some(NodeSystemInfo {
            architecture: architecture().to_owned(),
            operating_system: "linux".to_owned(),
            kubelet_version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
            container_runtime_version: runtime_name(node).to_owned(),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}

fn runtime_name(node: &Node) -> &'static str {
    match node.runtime {
        NodeRuntime::Process { .. } => concat!("process://", env!("CARGO_PKG_VERSION")),
        NodeRuntime::Simulated(_) => concat!("simulated://", env!("CARGO_PKG_VERSION")),
    }
}
