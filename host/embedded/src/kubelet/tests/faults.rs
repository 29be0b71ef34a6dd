//! The simulated runtime: each fault with the statuses and events of a real kubelet. Time is tokio's, and paused.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::cluster::*;
use crate::kubelet::SimulatedOptions;

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
    assert_eq!(
        (status.host_ip.as_deref(), status.qos_class.as_deref()),
        (Some("127.0.0.1"), Some("BestEffort"))
    );
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
    cluster.until_event("Pulling", "Pulling image \"setup:1\"").await;
    let pod = cluster.until("initializing", |pod| condition(pod, "Initialized").0 == "False").await;
    assert_eq!(waiting(&pod).0, "PodInitializing");
    cluster.until_event("Pulled", "Successfully pulled image \"setup:1\" in 9s").await;
    let pod = cluster.until("running", |pod| phase(pod) == "Running").await;
    assert_eq!(condition(&pod, "Ready"), ("False", "ContainersNotReady"));
    let pod = cluster.until("ready", is_ready).await;
    let created = pod.metadata.creation_timestamp.as_ref().unwrap().0;
    assert!(pod.status.unwrap().start_time.unwrap().0 >= created);
}

#[tokio::test(start_paused = true)]
async fn a_failing_pull() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "pull-failure"), ("fault-times", "1")], json!({})).await;
    let pod = cluster.until("in ErrImagePull", |pod| waiting(pod).0 == "ErrImagePull").await;
    assert!(waiting(&pod).1.contains("lab:1: not found"));
    let pod = cluster.until("in ImagePullBackOff", |pod| waiting(pod).0 == "ImagePullBackOff").await;
    assert_eq!((phase(&pod), notebook(&pod).restart_count), ("Pending", 0));
    cluster.until_event("BackOff", "Back-off pulling image \"lab:1\"").await;
    cluster.until("ready", is_ready).await;
    cluster.until_event("Started", "notebook").await;
    let expect =
        ["Scheduled", "Pulling", "Failed", "Failed", "BackOff", "Failed", "Pulled", "Created", "Started"];
    assert_eq!(cluster.reasons().await, expect);
}

#[tokio::test(start_paused = true)]
async fn images_that_cannot_be_pulled_at_all() {
    for (fault, reason, event) in [
        ("invalid-image", "InvalidImageName", "InspectFailed"),
        ("image-never-pull", "ErrImageNeverPull", "ErrImageNeverPull"),
    ] {
        let cluster = cluster().await;
        cluster.lab(&[("fault", fault)], json!({})).await;
        cluster.until(reason, |pod| waiting(pod).0 == reason).await;
        cluster.until_event(event, "lab:1").await;
        cluster.until_event("Failed", &format!("Error: {reason}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "crash-loop"), ("exit-code", "3"), ("fault-times", "4")], json!({})).await;
    let pod = cluster
        .until("twice restarted", |pod| {
            waiting(pod).0 == "CrashLoopBackOff" && notebook(pod).restart_count == 2
        })
        .await;
    assert_eq!(last(&pod), Some((3, "Error".to_owned())));
    assert_eq!(
        (phase(&pod), waiting(&pod).1.starts_with("back-off 20s restarting failed container=notebook")),
        ("Running", true)
    );
    let event = cluster.until_event("BackOff", "Back-off restarting failed container notebook").await;
    assert!(event.count >= Some(1));
    let pod = cluster.until("well at last", is_ready).await;
    assert_eq!(notebook(&pod).restart_count, 4);
}

#[tokio::test(start_paused = true)]
async fn out_of_memory() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "oom"), ("fault-after", "5s")], json!({"restartPolicy": "Never"})).await;
    let pod = cluster.until("failed", |pod| phase(pod) == "Failed").await;
    assert_eq!(terminated(&pod), Some((137, "OOMKilled".to_owned())));
    assert_eq!(condition(&pod, "Ready"), ("False", "PodFailed"));
}

#[tokio::test(start_paused = true)]
async fn a_lab_that_ends_by_itself() {
    let cluster = cluster().await;
    let annotations = [("fault", "exit"), ("exit-code", "0"), ("fault-after", "1m")];
    cluster.lab(&annotations, json!({"restartPolicy": "OnFailure"})).await;
    let pod = cluster.until("done", |pod| phase(pod) == "Succeeded").await;
    assert_eq!(terminated(&pod), Some((0, "Completed".to_owned())));
    assert_eq!(condition(&pod, "Ready"), ("False", "PodCompleted"));
    cluster.delete().await;
    cluster.until_gone("nb").await;
}

#[tokio::test(start_paused = true)]
async fn a_config_error_that_passes() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "config-error"), ("fault-times", "2")], json!({})).await;
    let pod = cluster.until("unconfigured", |pod| waiting(pod).0 == "CreateContainerConfigError").await;
    assert_eq!(waiting(&pod).1, "secret \"nb\" not found");
    cluster.until_event("Failed", "Error: secret \"nb\" not found").await;
    cluster.until("ready", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn volumes_that_cannot_be_mounted() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "mount-failure"), ("fault-times", "3")], json!({})).await;
    let event = cluster.until_event("FailedMount", "MountVolume.SetUp failed for volume \"data\"").await;
    assert_eq!(event.involved_object.field_path, None);
    let pod = cluster.until("ready", is_ready).await;
    assert_eq!(notebook(&pod).restart_count, 0);
}

#[tokio::test(start_paused = true)]
async fn failing_init_containers() {
    let init = json!([{"name": "setup", "image": "setup:1"}]);
    let never = cluster().await;
    never.lab(&[("fault", "init-failure")], json!({"restartPolicy": "Never", "initContainers": init})).await;
    let pod = never.until("failed", |pod| phase(pod) == "Failed").await;
    let setup = &pod.status.as_ref().unwrap().init_container_statuses.as_ref().unwrap()[0];
    assert_eq!(setup.state.as_ref().unwrap().terminated.as_ref().unwrap().exit_code, 1);
    assert_eq!(waiting(&pod).0, "PodInitializing");

    let again = cluster().await;
    let annotations = [("fault", "init-failure"), ("fault-times", "2")];
    again.lab(&annotations, json!({"restartPolicy": "OnFailure", "initContainers": init})).await;
    again.until_event("BackOff", "Back-off restarting failed container setup").await;
    let pod = again.until("ready", is_ready).await;
    assert_eq!(pod.status.unwrap().init_container_statuses.unwrap()[0].restart_count, 2);
}

#[tokio::test(start_paused = true)]
async fn never_ready() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "not-ready"), ("fault-times", "3")], json!({})).await;
    let event =
        cluster.until_event("Unhealthy", "Readiness probe failed: Get \"http://127.101.0.2:8888/\"").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    cluster.until("ready", is_ready).await;
    let event = cluster.until_event("Unhealthy", "").await;
    assert_eq!(event.count, Some(3), "repeats are folded");
}

#[tokio::test(start_paused = true)]
async fn eviction() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "evicted"), ("fault-after", "30s")], json!({})).await;
    cluster.until("ready", is_ready).await;
    let pod = cluster.until("failed", |pod| phase(pod) == "Failed").await;
    let status = pod.status.as_ref().unwrap();
    assert_eq!(status.reason.as_deref(), Some("Evicted"));
    assert!(status.message.as_deref().unwrap().starts_with("The node was low on resource: memory."));
    assert_eq!(condition(&pod, "DisruptionTarget"), ("True", "TerminationByKubelet"));
    assert_eq!(terminated(&pod).unwrap().0, 137);
    cluster.until_event("Evicted", "low on resource").await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_node() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "node-loss"), ("fault-after", "10s"), ("eviction-delay", "1m")], json!({})).await;
    cluster.until("ready", is_ready).await;
    let pod = cluster.until("not ready", |pod| condition(pod, "Ready").0 == "False").await;
    assert!(notebook(&pod).ready, "the kubelet that is gone cannot say otherwise");
    cluster.until_event("NodeNotReady", "Node is not ready").await;
    let pod = cluster.until("terminating", |pod| pod.metadata.deletion_timestamp.is_some()).await;
    cluster.until("disrupted", |pod| condition(pod, "DisruptionTarget").1 == "DeletionByTaintManager").await;
    assert_eq!(phase(&pod), "Running");
    cluster.force_delete().await;
    cluster.until_gone("nb").await;
}

#[tokio::test(start_paused = true)]
async fn a_stuck_deletion() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "stuck-deletion")], json!({"terminationGracePeriodSeconds": 1})).await;
    cluster.until("ready", is_ready).await;
    cluster.delete().await;
    cluster.until_event("Killing", "Stopping container notebook").await;
    tokio::time::advance(Duration::from_mins(2)).await;
    cluster.until("terminating", |pod| pod.metadata.deletion_timestamp.is_some()).await;
    cluster.force_delete().await;
    cluster.until_gone("nb").await;
    cluster.lab(&[], json!({})).await;
    cluster.until("ready", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn deadlines() {
    let cluster = cluster().await;
    cluster.lab(&[], json!({"activeDeadlineSeconds": 60})).await;
    let pod = cluster.until("failed", |pod| phase(pod) == "Failed").await;
    assert_eq!(pod.status.unwrap().reason.as_deref(), Some("DeadlineExceeded"));
}

#[tokio::test(start_paused = true)]
async fn annotations_that_make_no_sense() {
    let cluster = cluster().await;
    cluster.lab(&[("fault", "fire")], json!({})).await;
    cluster.until_event("InvalidSimulation", "choose of unschedulable").await;
    cluster.until("ready nevertheless", is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn sidecars_end_after_the_lab() {
    let cluster = cluster().await;
    let sidecar = json!([{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}]);
    let annotations =
        [("fault", "exit"), ("exit-code", "0"), ("fault-after", "9s"), ("container", "notebook")];
    cluster.lab(&annotations, json!({"restartPolicy": "Never", "initContainers": sidecar})).await;
    cluster.until("ready", is_ready).await;
    let pod = cluster.until("done", |pod| phase(pod) == "Succeeded").await;
    let stopped = cluster
        .until("without sidecar", |pod| {
            let proxy = pod.status.as_ref().and_then(|status| status.init_container_statuses.clone());
            proxy.is_some_and(|proxy| proxy[0].state.as_ref().is_some_and(|state| state.terminated.is_some()))
        })
        .await;
    assert_eq!(terminated(&pod), terminated(&stopped));
}

#[tokio::test(start_paused = true)]
async fn readiness_gates_are_respected() {
    let cluster = cluster().await;
    cluster.lab(&[], json!({"readinessGates": [{"conditionType": "site/ok"}]})).await;
    cluster.until("held back", |pod| condition(pod, "Ready").1 == "ReadinessGatesNotReady").await;
    let patch = json!({"status": {"conditions": [{"type": "site/ok", "status": "True"}]}});
    cluster.pods().patch_status("nb", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    let pod = cluster.until("ready", is_ready).await;
    assert_eq!(condition(&pod, "site/ok").0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_new_kubelet_goes_on_with_running_pods() {
    let first = cluster().await;
    first.lab(&[], json!({})).await;
    let before = first.until("ready", is_ready).await;
    let server = first.stop().await;
    let second =
        Cluster::start(server, crate::kubelet::Runtime::Simulated(SimulatedOptions::default())).await;
    second.create::<k8s_openapi::api::core::v1::Pod>(lab("other", &[], &json!({}))).await;
    let other = second.until_pod("other", "ready", is_ready).await;
    let after = second.until("ready", is_ready).await;
    let ip = |pod: &k8s_openapi::api::core::v1::Pod| pod.status.as_ref().unwrap().pod_ip.clone();
    assert_eq!((notebook(&after), ip(&after)), (notebook(&before), ip(&before)));
    assert_ne!(ip(&other), ip(&before));
    second.delete().await;
    second.until_gone("nb").await;
}
