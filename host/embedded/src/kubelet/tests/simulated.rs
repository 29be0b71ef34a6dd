//! Tests of the simulated runtime: pods with the statuses and events of a real kubelet. Time is tokio's, and paused.
//! The service's reaction to each fault is tested in `tests/tests/api`.

use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kube::Api;
use serde_json::json;

use super::cluster::*;

#[tokio::test(start_paused = true)]
async fn a_lab_waits_for_its_claim_becomes_ready_and_goes() {
    let cluster = Cluster::simulated().await;
    let nodes: Api<Node> = Api::all(cluster.client());
    let node = cluster.until_some("the node", async || nodes.get("local").await.ok()?.status).await;
    assert!(node.addresses.unwrap().iter().any(|a| a.type_ == "InternalIP" && a.address == "127.0.0.1"));

    let home = json!({"name": "home", "persistentVolumeClaim": {"claimName": "home"}});
    cluster.lab(&[], json!({"volumes": [home], "nodeSelector": {"kubernetes.io/hostname": "local"}})).await;
    cluster.until_event("FailedScheduling", "persistentvolumeclaim \"home\" not found").await;
    let claim = json!({"metadata": {"name": "home"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    cluster.create::<PersistentVolumeClaim>(claim).await;
    let pod = cluster.until("ready", is_ready).await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), NAMESPACE);
    assert_eq!(claims.get("home").await.unwrap().status.unwrap().phase.as_deref(), Some("Bound"));
    let status = pod.status.as_ref().unwrap();
    assert_eq!((phase(&pod), ip(&pod).as_str()), ("Running", "127.101.0.2"));
    assert_eq!(status.host_ip.as_deref(), Some("127.0.0.1"));
    assert!(status.start_time.is_some());
    assert!(notebook(&pod).ready && notebook(&pod).started == Some(true));
    for kind in ["PodScheduled", "Initialized", "ContainersReady"] {
        assert_eq!(condition(&pod, kind).0, "True", "{kind}");
    }
    cluster.until_event("Started", "Container started").await;
    let pulled = cluster.until_event("Pulled", "already present").await;
    assert_eq!(pulled.involved_object.field_path.as_deref(), Some("spec.containers{notebook}"));
    for (reason, count) in [("Scheduled", 1), ("Pulled", 1), ("Created", 1), ("Started", 1)] {
        let events = cluster.events().await;
        let found = events.iter().filter(|event| event.reason.as_deref() == Some(reason)).count();
        assert_eq!(found, count, "{reason}");
    }
    cluster.delete().await;
    cluster.until_event("Killing", "Stopping container notebook").await;
}

#[tokio::test(start_paused = true)]
async fn delays_are_seen_as_stages() {
    let cluster = Cluster::simulated().await;
    let delays =
        [("schedule-delay", "2s"), ("pull-delay", "9s"), ("init-delay", "3s"), ("ready-delay", "4s")];
    cluster.lab(&delays, json!({"initContainers": [{"name": "setup", "image": "setup:1"}]})).await;
    let pod = cluster.until("initializing", |pod| condition(pod, "Initialized").0 == "False").await;
    assert_eq!(waiting(&pod).0, "PodInitializing");
    cluster.until_event("Pulled", "Successfully pulled image \"setup:1\" in 9s").await;
    let pod = cluster.until("running", |pod| phase(pod) == "Running").await;
    assert_eq!(condition(&pod, "Ready"), ("False", "ContainersNotReady"));
    cluster.until("ready", is_ready).await;
}

#[tokio::test]
async fn the_node_lists_the_images_that_its_pods_have_used() {
    let cluster = Cluster::simulated().await;
    cluster.create::<Pod>(lab("mine", &[], &json!({"nodeName": "local"}))).await;
    let image = cluster.pods().get("mine").await.unwrap().spec.unwrap().containers[0].image.clone().unwrap();
    let nodes: Api<Node> = Api::all(cluster.client());
    let listed = async || nodes.get("local").await.ok()?.status?.images?.pop()?.names;
    assert_eq!(cluster.until_some("the image", listed).await, [image]);
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_container_is_tried_again_after_a_fault() {
    for (fault, reason, message, event, restarts) in [
        ("pull-failure", "ImagePullBackOff", "Back-off pulling image \"lab:1\"", "BackOff", 0),
        ("config-error", "CreateContainerConfigError", "secret \"nb\" not found", "Failed", 0),
        ("crash-loop", "CrashLoopBackOff", "back-off 10s restarting failed container", "BackOff", 3),
    ] {
        let cluster = Cluster::simulated().await;
        cluster.lab(&[("fault", fault), ("fault-times", "3")], json!({})).await;
        let pod = cluster.until(reason, |pod| waiting(pod).0 == reason).await;
        assert!(waiting(&pod).1.contains(message), "{:?}", waiting(&pod));
        cluster.until_event(event, "").await;
        let pod = cluster.until("ready at last", is_ready).await;
        assert_eq!(notebook(&pod).restart_count, restarts, "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_events_are_counted() {
    let cluster = Cluster::simulated().await;
    cluster.lab(&[("fault", "not-ready"), ("fault-times", "3")], json!({})).await;
    cluster.until("ready", is_ready).await;
    let message = "Readiness probe failed: Get \"http://127.101.0.2:8888/\"";
    let event = cluster.until_event("Unhealthy", message).await;
    assert_eq!((event.type_.as_deref(), event.count), (Some("Warning"), Some(3)));
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_fails_as_a_whole() {
    let cluster = Cluster::simulated().await;
    cluster.lab(&[("fault", "evicted"), ("fault-after", "5s")], json!({})).await;
    let pod = cluster.until("failed", |pod| phase(pod) == "Failed").await;
    assert_eq!(pod.status.as_ref().unwrap().reason.as_deref(), Some("Evicted"));
    assert_eq!(condition(&pod, "DisruptionTarget"), ("True", "TerminationByKubelet"));
    assert_eq!(ends(&pod)[0], Some((137, "Error".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn only_pods_that_fit_the_node_run() {
    let cluster = Cluster::simulated().await;
    cluster.lab(&[], json!({"nodeSelector": {"zone": "elsewhere"}})).await;
    cluster.create::<Pod>(lab("other", &[], &json!({"nodeName": "elsewhere"}))).await;
    cluster.create::<Pod>(lab("mine", &[], &json!({"nodeName": "local"}))).await;
    cluster.until_pod("mine", "ready", is_ready).await;
    cluster.until("refused", |pod| condition(pod, "PodScheduled").1 == "Unschedulable").await;
    cluster.until_event("FailedScheduling", "didn't match Pod's node affinity/selector").await;
    let other = cluster.pods().get("other").await.unwrap();
    assert_eq!(other.status.and_then(|status| status.pod_ip), None);
}
