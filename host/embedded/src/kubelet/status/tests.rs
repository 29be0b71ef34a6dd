//! Tables over whole pods.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn pod(spec: &Value) -> Pod {
    let mut spec = spec.clone();
    if spec.get("containers").is_none() {
        spec["containers"] = json!([{"name": "notebook", "image": "lab:1"}]);
    }
    serde_json::from_value(json!({"metadata": {"name": "nb"}, "spec": spec})).unwrap()
}

fn ended(code: i32) -> ContainerState {
    ContainerState::Terminated(Termination {
        exit_code: code,
        reason: if code == 0 { "Completed" } else { "Error" }.to_owned(),
        message: String::new(),
        started_at: Some(at(1)),
        finished_at: at(2),
        container_id: Some("sim://1".to_owned()),
    })
}

fn running() -> ContainerState {
    ContainerState::Running { since: at(1) }
}

fn record(pod: &Pod, change: impl FnOnce(&mut PodRecord)) -> PodRecord {
    let mut record = PodRecord::of(pod, "127.0.0.1".to_owned());
    record.pod_ip = Some("127.101.0.2".to_owned());
    record.started_at = Some(at(0));
    change(&mut record);
    record
}

fn phase_of(spec: &Value, change: impl FnOnce(&mut PodRecord)) -> String {
    let pod = pod(spec);
    pod_status(&pod, &record(&pod, change), None, at(9)).phase.unwrap()
}

fn condition<'a>(status: &'a PodStatus, kind: &str) -> (&'a str, &'a str, &'a str) {
    let condition = status.conditions.iter().flatten().find(|c| c.type_ == kind).unwrap();
    (&condition.status, condition.reason.as_deref().unwrap_or(""), condition.message.as_deref().unwrap_or(""))
}

#[test]
fn phases() {
    let always = json!({});
    let never = json!({"restartPolicy": "Never"});
    let on_failure = json!({"restartPolicy": "OnFailure"});
    let two = json!({"restartPolicy": "Never", "containers": [{"name": "a"}, {"name": "b"}]});
    let set = |state: ContainerState| move |r: &mut PodRecord| r.containers[0].state = state;
    assert_eq!(phase_of(&always, |_| ()), "Pending");
    assert_eq!(phase_of(&always, set(running())), "Running");
    assert_eq!(phase_of(&always, set(ended(1))), "Running");
    assert_eq!(phase_of(&always, set(ended(0))), "Running");
    assert_eq!(phase_of(&never, set(ended(0))), "Succeeded");
    assert_eq!(phase_of(&never, set(ended(3))), "Failed");
    assert_eq!(phase_of(&on_failure, set(ended(0))), "Succeeded");
    assert_eq!(phase_of(&on_failure, set(ended(3))), "Running");
    assert_eq!(phase_of(&two, set(ended(1))), "Pending");
    let both = |a, b| {
        move |r: &mut PodRecord| {
            r.containers[0].state = a;
            r.containers[1].state = b;
        }
    };
    assert_eq!(phase_of(&two, both(ended(1), running())), "Running");
    assert_eq!(phase_of(&two, both(ended(1), ended(0))), "Failed");
}

#[test]
fn init_containers_hold_the_pod_back() {
    let spec = json!({"initContainers": [{"name": "setup"}]});
    assert_eq!(phase_of(&spec, |r| r.init[0].state = running()), "Pending");
    assert_eq!(phase_of(&spec, |r| r.init[0].state = ended(1)), "Pending");
    let never = json!({"initContainers": [{"name": "setup"}], "restartPolicy": "Never"});
    assert_eq!(phase_of(&never, |r| r.init[0].state = ended(1)), "Failed");
    let pod = pod(&spec);
    let status = pod_status(&pod, &record(&pod, |r| r.init[0].state = running()), None, at(9));
    assert_eq!(
        condition(&status, "Initialized"),
        ("False", "ContainersNotInitialized", "containers with incomplete status: [setup]")
    );
    let waiting = status.container_statuses.unwrap()[0].state.clone().unwrap().waiting.unwrap();
    assert_eq!(waiting.reason.as_deref(), Some("PodInitializing"));
}

#[test]
fn a_started_sidecar_counts_as_initialized() {
    let pod = pod(&json!({"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}));
    let record = record(&pod, |r| {
        r.init[0].state = running();
        r.init[0].started = true;
        r.containers[0].state = running();
        r.containers[0].ready = true;
    });
    let status = pod_status(&pod, &record, None, at(9));
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert_eq!(condition(&status, "Initialized"), ("True", "", ""));
    assert_eq!(
        condition(&status, "Ready"),
        ("False", "ContainersNotReady", "containers with unready status: [proxy]")
    );
}

#[test]
fn transition_times_move_only_with_the_status() {
    let pod = pod(&json!({}));
    let ready = |ready| {
        record(&pod, |r| {
            r.containers[0].state = running();
            r.containers[0].ready = ready;
        })
    };
    let first = pod_status(&pod, &ready(false), None, at(5));
    let second = pod_status(&pod, &ready(true), Some(&first), at(8));
    let since = |kind: &str| {
        let condition = second.conditions.iter().flatten().find(|c| c.type_ == kind).unwrap();
        condition.last_transition_time.as_ref().unwrap().0
    };
    assert_eq!((since("PodScheduled"), since("Ready")), (at(5), at(8)));
}

#[test]
fn ends_of_a_whole_pod() {
    let pod = pod(&json!({}));
    let evicted = record(&pod, |r| {
        r.containers[0].state = ended(137);
        r.end = Some(End::new("Evicted", "The node was low on resource: memory. "));
        r.disruption = Some(End::new("TerminationByKubelet", "The node was low on resource: memory. "));
    });
    let status = pod_status(&pod, &evicted, None, at(9));
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("Evicted"));
    assert_eq!(condition(&status, "Ready"), ("False", "PodFailed", ""));
    assert_eq!(condition(&status, "DisruptionTarget").1, "TerminationByKubelet");
}

#[test]
fn a_record_survives_its_status() {
    let mut pod = pod(&json!({"initContainers": [{"name": "setup"}]}));
    let before = record(&pod, |r| {
        r.init[0].state = ended(0);
        r.containers[0].state = running();
        r.containers[0].restarts = 1;
        r.containers[0].started = true;
        r.containers[0].ready = true;
        r.containers[0].container_id = Some("process://4".to_owned());
    });
    pod.status = Some(pod_status(&pod, &before, None, at(9)));
    assert_eq!(PodRecord::of(&pod, "127.0.0.1".to_owned()), before);
}

#[test]
fn an_unscheduled_pod_says_why() {
    let status = unscheduled(&pod(&json!({})), "0/1 nodes are available", at(3));
    assert_eq!(condition(&status, "PodScheduled"), ("False", "Unschedulable", "0/1 nodes are available"));
    assert_eq!(status.phase, None);
}
