//! Table tests of the statuses of whole pods.

use serde_json::{Value, json};

use super::*;
use crate::kubelet::exit::Exit;

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
    terminated(Exit::of_code(code).terminated(Some(Time(at(1))), at(2), None))
}

/// Returns the status of a pod with these states of containers, by name.
fn status(spec: &Value, given: &[(&str, ContainerState)]) -> PodStatus {
    let pod = pod(spec);
    let mut status = initial(&pod, "127.0.0.1".to_owned());
    for (name, state) in given {
        container_mut(&mut status, name).unwrap().state = Some(state.clone());
    }
    update(&pod, &mut status, at(9));
    status
}

fn condition<'a>(status: &'a PodStatus, kind: &str) -> (&'a str, &'a str, &'a str) {
    let condition = status.conditions.iter().flatten().find(|c| c.type_ == kind).unwrap();
    (&condition.status, condition.reason.as_deref().unwrap_or(""), condition.message.as_deref().unwrap_or(""))
}

#[test]
fn phases() {
    let two = |policy| json!({"restartPolicy": policy, "containers": [{"name": "a"}, {"name": "b"}]});
    let waits = || waiting("ContainerCreating", "");
    let runs = || running(at(1));
    for (policy, a, b, expected) in [
        ("Always", waits(), waits(), "Pending"),
        ("Always", runs(), waits(), "Pending"),
        ("Always", runs(), runs(), "Running"),
        ("Always", ended(0), ended(1), "Running"),
        ("Never", ended(0), ended(0), "Succeeded"),
        ("Never", ended(0), ended(3), "Failed"),
        ("Never", ended(1), runs(), "Running"),
        ("OnFailure", ended(0), ended(0), "Succeeded"),
        ("OnFailure", ended(0), ended(3), "Running"),
    ] {
        let status = status(&two(policy), &[("a", a), ("b", b)]);
        assert_eq!(status.phase.as_deref(), Some(expected), "{policy} {status:?}");
    }
}

#[test]
fn init_containers_hold_the_pod_back() {
    let spec = |policy| json!({"initContainers": [{"name": "setup"}], "restartPolicy": policy});
    let initializing = status(&spec("Always"), &[("setup", running(at(1)))]);
    assert_eq!(initializing.phase.as_deref(), Some("Pending"));
    assert_eq!(
        condition(&initializing, "Initialized"),
        ("False", "ContainersNotInitialized", "containers with incomplete status: [setup]")
    );
    let notebook = container(&initializing, "notebook").unwrap().state.clone().unwrap();
    assert_eq!(notebook.waiting.unwrap().reason.as_deref(), Some("PodInitializing"));
    assert_eq!(status(&spec("Always"), &[("setup", ended(1))]).phase.as_deref(), Some("Pending"));
    assert_eq!(status(&spec("Never"), &[("setup", ended(1))]).phase.as_deref(), Some("Failed"));
}
