//! The simulated runtime: pods with the statuses and events of a real kubelet. Time is tokio's, and paused.

use std::collections::HashSet;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use super::cluster::*;
use crate::kubelet::{Runtime, SimulatedOptions};

async fn cluster() -> Cluster {
    Cluster::simulated(SimulatedOptions::default()).await
}

#[tokio::test(start_paused = true)]
async fn a_lab_becomes_ready_and_goes() {
    let cluster = cluster().await;
    cluster.lab(&[], json!({})).await;
    let pod = cluster.until("ready", is_ready).await;
    let status = pod.status.as_ref().unwrap();
    assert_eq!((phase(&pod), status.pod_ip.as_deref()), ("Running", Some("127.101.0.2")));
    let (host_ip, class) = (status.host_ip.as_deref(), status.qos_class.as_deref());
    assert_eq!((host_ip, class), (Some("127.0.0.1"), Some("BestEffort")));
    assert!(status.start_time.is_some());
    assert!(notebook(&pod).ready && notebook(&pod).started == Some(true));
    for kind in ["PodScheduled", "Initialized", "ContainersReady"] {
        assert_eq!(condition(&pod, kind).0, "True", "{kind}");
    }
    cluster.until_event("Started", "Started container notebook").await;
    let pulled = cluster.until_event("Pulled", "already present").await;
    assert_eq!(pulled.involved_object.field_path.as_deref(), Some("spec.containers{notebook}"));
    assert_eq!(cluster.reasons().await, ["Scheduled", "Pulled", "Created", "Started"]);
    cluster.delete().await;
    cluster.until_gone("nb").await;
    cluster.until_event("Killing", "Stopping container notebook").await;
}

#[tokio::test(start_paused = true)]
async fn delays_are_seen_as_stages() {
    let cluster = cluster().await;
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

/// A fault that keeps the container waiting, for a time.
#[tokio::test(start_paused = true)]
async fn containers_that_wait() {
    for (fault, times, reason, message, event, text) in [
        ("pull-failure", "1", "ErrImagePull", "lab:1: not found", "Failed", "Error: ErrImagePull"),
        ("pull-failure", "1", "ImagePullBackOff", "Back-off", "BackOff", "Back-off pulling image \"lab:1\""),
        ("invalid-image", "1", "InvalidImageName", "lab:1", "InspectFailed", "lab:1"),
        (
            "config-error",
            "2",
            "CreateContainerConfigError",
            "secret \"nb\" not found",
            "Failed",
            "Error: secret",
        ),
        (
            "crash-loop",
            "4",
            "CrashLoopBackOff",
            "back-off 10s restarting failed container=notebook",
            "BackOff",
            "Back-off restarting failed container notebook",
        ),
    ] {
        let cluster = cluster().await;
        cluster.lab(&[("fault", fault), ("fault-times", times)], json!({})).await;
        let pod = cluster.until(reason, |pod| waiting(pod).0 == reason).await;
        assert!(waiting(&pod).1.contains(message), "{:?}", waiting(&pod));
        cluster.until_event(event, text).await;
        let pod = cluster.until("well at last", is_ready).await;
        assert_eq!(notebook(&pod).restart_count, if fault == "crash-loop" { 4 } else { 0 }, "{fault}");
    }
}

/// A fault that ends the container, and the pod with it.
#[tokio::test(start_paused = true)]
async fn containers_that_end() {
    for (fault, exit, reason) in [("oom", 137, "OOMKilled"), ("exit", 1, "Error"), ("evicted", 137, "Error")]
    {
        let cluster = cluster().await;
        let annotations = [("fault", fault), ("fault-after", "5s")];
        cluster.lab(&annotations, json!({"restartPolicy": "Never"})).await;
        let pod = cluster.until("failed", |pod| phase(pod) == "Failed").await;
        assert_eq!(terminated(&pod), Some((exit, reason.to_owned())), "{fault}");
        assert_eq!(condition(&pod, "Ready"), ("False", "PodFailed"));
        if fault == "evicted" {
            assert_eq!(pod.status.as_ref().unwrap().reason.as_deref(), Some("Evicted"));
            assert_eq!(condition(&pod, "DisruptionTarget"), ("True", "TerminationByKubelet"));
            cluster.until_event("Evicted", "low on resource").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn never_ready() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "not-ready"), ("fault-times", "3")], json!({})).await;
    cluster.until("ready", is_ready).await;
    let event =
        cluster.until_event("Unhealthy", "Readiness probe failed: Get \"http://127.101.0.2:8888/\"").await;
    assert_eq!((event.type_.as_deref(), event.count), (Some("Warning"), Some(3)), "repeats are folded");
}

#[tokio::test(start_paused = true)]
async fn annotations_that_make_no_sense() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "fire")], json!({})).await;
    cluster.until_event("InvalidSimulation", "expected one of `pull-failure`").await;
    cluster.until("ready nevertheless", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_kubelet_goes_on_with_running_pods() {
    let first = cluster().await;
    first.lab(&[], json!({})).await;
    let before = first.until("ready", is_ready).await;
    let server = first.stop().await;
    let second = Cluster::start(server, Runtime::Simulated(SimulatedOptions::default())).await;
    second.create::<Pod>(lab("other", &[], &json!({}))).await;
    let other = second.until_pod("other", "ready", is_ready).await;
    let after = second.until("ready", is_ready).await;
    let ip = |pod: &Pod| pod.status.as_ref().unwrap().pod_ip.clone();
    assert_eq!((notebook(&after), ip(&after)), (notebook(&before), ip(&before)));
    assert_ne!(ip(&other), ip(&before));
    second.delete().await;
    second.until_gone("nb").await;
}

#[tokio::test(start_paused = true)]
async fn two_hundred_labs_start_and_end_together() {
    let cluster = cluster().await;
    let names: Vec<_> = (0..200).map(|number| format!("nb-{number}")).collect();
    join_all(names.iter().map(|name| cluster.create::<Pod>(lab(name, &[], &json!({}))))).await;
    let pods = join_all(names.iter().map(|name| cluster.until_pod(name, "ready", is_ready))).await;
    let addresses: HashSet<_> = pods.iter().map(|pod| pod.status.as_ref().unwrap().pod_ip.clone()).collect();
    assert_eq!(addresses.len(), names.len());
    join_all(pods.iter().map(|pod| {
        let (pods, name) = (cluster.pods(), pod.name_any());
        async move { pods.delete(&name, &DeleteParams::default()).await.unwrap() }
    }))
    .await;
    join_all(names.iter().map(|name| cluster.until_gone(name))).await;
}
