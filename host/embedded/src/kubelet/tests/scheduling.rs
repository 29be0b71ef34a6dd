//! Binding pods and claims, and the Node object.

use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim};
use kube::Api;
use kube::runtime::wait::await_condition;
use serde_json::json;

use super::cluster::*;
use crate::kubelet::SimulatedOptions;

async fn cluster() -> Cluster {
    Cluster::simulated(SimulatedOptions::default()).await
}

fn claim(name: &str) -> serde_json::Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}

#[tokio::test(start_paused = true)]
async fn the_node_is_registered() {
    let cluster = cluster().await;
    let nodes: Api<Node> = Api::all(cluster.client());
    let ready = |node: Option<&Node>| {
        let conditions = node.and_then(|node| node.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
    };
    let node = bounded("the node", await_condition(nodes, "local", ready)).await.unwrap().unwrap();
    let status = node.status.unwrap();
    assert!(status.capacity.unwrap().contains_key("memory"));
    assert!(status.addresses.unwrap().iter().any(|a| a.type_ == "InternalIP" && a.address == "127.0.0.1"));
    assert_eq!(node.metadata.labels.unwrap()["kubernetes.io/hostname"], "local");
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_does_not_match() {
    let cluster = cluster().await;
    cluster.lab(&[], json!({"nodeSelector": {"zone": "elsewhere"}})).await;
    let pod = cluster.until("refused", |pod| condition(pod, "PodScheduled").1 == "Unschedulable").await;
    assert_eq!(phase(&pod), "Pending");
    let event = cluster.until_event("FailedScheduling", "didn't match Pod's node affinity/selector").await;
    assert_eq!((event.last_timestamp, event.event_time.is_some()), (None, true));
    cluster.delete().await;
    cluster.until_gone("nb").await;
    cluster.lab(&[], json!({"nodeSelector": {"zone": "here"}})).await;
    cluster.until("ready", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn claims_are_bound_and_waited_for() {
    let cluster = cluster().await;
    let volumes = json!({"volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}]});
    cluster.lab(&[], volumes).await;
    cluster.until_event("FailedScheduling", "persistentvolumeclaim \"home\" not found").await;
    cluster.create::<PersistentVolumeClaim>(claim("home")).await;
    cluster.until("ready", is_ready).await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), NAMESPACE);
    let claim = claims.get("home").await.unwrap();
    assert_eq!(claim.status.unwrap().phase.as_deref(), Some("Bound"));
    assert!(claim.spec.unwrap().volume_name.unwrap().starts_with("pvc-"));
}

#[tokio::test(start_paused = true)]
async fn pods_of_other_nodes_are_left_alone() {
    let cluster = cluster().await;
    cluster.lab(&[], json!({"nodeName": "elsewhere"})).await;
    cluster.create::<k8s_openapi::api::core::v1::Pod>(lab("mine", &[], &json!({"nodeName": "local"}))).await;
    cluster.until_pod("mine", "ready", is_ready).await;
    let other = cluster.pods().get("nb").await.unwrap();
    assert_eq!(other.status.and_then(|status| status.pod_ip), None);
}
