//! The Node object.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        ContainerImage, Node as NodeObject, NodeAddress, NodeCondition, NodeStatus, NodeSystemInfo,
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{ObjectMeta, Time},
    },
};

use super::{Node, NodeRuntime};

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
pub(super) fn object(node: &Node) -> NodeObject {
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
pub(super) fn status(node: &Node, since: Timestamp, now: Timestamp) -> NodeStatus {
    let capacity: BTreeMap<String, Quantity> = [
        ("cpu", format!("{}m", node.capacity.cpu_milli)),
        ("memory", node.capacity.memory.to_string()),
        ("pods", node.capacity.pods.to_string()),
    ]
    .map(|(resource, amount)| (resource.to_owned(), Quantity(amount)))
    .into();
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| NodeCondition {
        type_: kind.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: Some(Time(since)),
    };
    let address = |kind: &str, address: String| NodeAddress { type_: kind.to_owned(), address };
    NodeStatus {
        allocatable: Some(capacity.clone()),
        capacity: Some(capacity),
        conditions: Some(vec![
            condition(
                "MemoryPressure",
                false,
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available",
            ),
            condition("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition(
                "PIDPressure",
                false,
                "KubeletHasSufficientPID",
                "kubelet has sufficient PID available",
            ),
            condition("Ready", true, "KubeletReady", "kubelet is posting ready status"),
        ]),
        addresses: Some(vec![
            address("InternalIP", node.host_ip.to_string()),
            address("Hostname", node.name.clone()),
        ]),
        node_info: Some(NodeSystemInfo {
            architecture: architecture().to_owned(),
            operating_system: "linux".to_owned(),
            kubelet_version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
            container_runtime_version: runtime_name(node).to_owned(),
            ..NodeSystemInfo::default()
        }),
        images: Some(images(node)),
        ..NodeStatus::default()
    }
}

fn runtime_name(node: &Node) -> &'static str {
    match node.runtime {
        NodeRuntime::Process { .. } => concat!("process://", env!("CARGO_PKG_VERSION")),
        NodeRuntime::Simulated(_) => concat!("simulated://", env!("CARGO_PKG_VERSION")),
    }
}

/// The images that are mapped by their full name.
fn images(node: &Node) -> Vec<ContainerImage> {
    let NodeRuntime::Process { options, .. } = &node.runtime else { return Vec::new() };
    let names =
        options.images.iter().map(|mapping| &mapping.pattern).filter(|pattern| !pattern.contains('*'));
    names.map(|name| ContainerImage { names: Some(vec![name.clone()]), size_bytes: None }).collect()
}
