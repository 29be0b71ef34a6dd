//! The observed state of a workload, and its meaning for a lab in it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use wasmspawner_core::lifecycle::stage::{Analysis, Stage, StagePolicy};
use wasmspawner_core::lifecycle::{
    Effect, Event, Lab, LabTimeLimits, Observed, OperationKind, Presence, RestartPolicy, TimeLimits,
};
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::SpawnKind;
use wasmspawner_core::workload::{
    LabMark, LabPod, Look, Revisions, Seen, Workload, WorkloadObject, leftovers, look, remainder,
};

const SPAWN: &str = "5d3c0f5e-0000-4000-8000-000000000002";
const NOW: &str = "0196f000-0000-7000-8000-000000000001";
const BEFORE: &str = "0196f000-0000-7000-8000-000000000000";

fn mark() -> LabMark {
    LabMark::from_spawn(SPAWN)
}

fn template(operation: Option<&str>) -> Value {
    let mut template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web" }] },
    });
    if let Some(operation) = operation {
        template["metadata"]["labels"][mark().label()] = operation.into();
        template["metadata"]["labels"]["injected.wasmspawner.io/test"] = "true".into();
        let containers = template["spec"]["containers"].as_array_mut().unwrap();
        containers.push(
            json!({ "name": mark().container(), "ports": [{ "name": "notebook", "containerPort": 40000 }] }),
        );
        template["spec"]["volumes"] = json!([{ "name": mark().part("nss") }]);
        template["spec"]["imagePullSecrets"] = json!([{ "name": mark().part("pull") }]);
    }
    template
}

fn deployment(spec: &Value) -> WorkloadObject {
    let workload = Workload::parse("deployment/shop/web").unwrap();
    let object = json!({ "metadata": { "uid": "uid-of-web", "resourceVersion": "7" }, "spec": spec });
    WorkloadObject::read(workload.kind, &object).unwrap()
}

/// A pod of the Deployment with the lab of this operation; `age` is its age in seconds.
fn pod(name: &str, age: i64, operation: &str, status: &str) -> Value {
    let created = Timestamp::from_second(1_000_000 - age).unwrap();
    let state = |status: &str| match status {
        "ready" => json!({ "ready": true, "started": true, "restartCount": 0, "state": { "running": {} } }),
        "crashes" => {
            json!({ "ready": false, "restartCount": 9, "state": { "waiting": { "reason": "CrashLoopBackOff" } },
            "lastState": { "terminated": { "exitCode": 1, "reason": "Error" } } })
        }
        _ => json!({ "ready": false, "started": false, "restartCount": 0, "state": { "running": {} } }),
    };
    let (of_web, of_lab) = status.split_once('/').unwrap();
    let named = |name: &str, status: &str| {
        let mut written = state(status);
        written["name"] = name.into();
        written
    };
    json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("uid-of-{name}"), "creationTimestamp": created,
            "labels": { "app": "web", mark().label(): operation },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-abc", "uid": "uid-of-web-abc", "controller": true }],
        },
        "spec": {
            "nodeName": "n",
            "containers": [
                { "name": "web", "ports": [{ "name": "notebook", "containerPort": 80 }] },
                { "name": mark().container(), "ports": [{ "name": "notebook", "containerPort": 40000 }] },
            ],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1",
            "conditions": [
                { "type": "PodScheduled", "status": "True" },
                { "type": "Ready", "status": if status == "ready/ready" { "True" } else { "False" } },
            ],
            "containerStatuses": [named("web", of_web), named(&mark().container(), of_lab)],
        },
    })
}

/// The `ReplicaSet`s of the `Deployment` and of another owner's.
fn revisions() -> Revisions {
    let revision = |uid: &str, deployment: &str| (uid.to_owned(), deployment.to_owned());
    Revisions::from([revision("uid-of-web-abc", "uid-of-web"), revision("uid-of-forged", "uid-of-another")])
}

fn seen(state: Option<&WorkloadObject>, pods: &[Value], kept: Option<&str>) -> Look {
    let pods: Vec<Pod> = pods.iter().map(|pod| serde_json::from_value(pod.clone()).unwrap()).collect();
    let pods: Vec<Arc<LabPod>> = pods.iter().flat_map(LabPod::all).map(Arc::new).collect();
    look(&Seen {
        workload: &Workload::parse("deployment/shop/web").unwrap(),
        uid: Some("uid-of-web"),
        state: state.map(|object| &object.state),
        pods: &pods,
        revisions: &revisions(),
        mark: &mark(),
        operation: Some(NOW.parse::<JobId>().unwrap()),
        kept,
    })
}

fn chosen(pods: &[Value], kept: Option<&str>) -> String {
    let state = deployment(&json!({ "replicas": 3, "template": template(Some(NOW)) }));
    seen(Some(&state), pods, kept).pod.map(|pod| pod.pod.name.clone()).unwrap_or_default()
}

#[test]
fn a_workload_is_observed_when_its_controller_has_seen_the_present_template() {
    let observed = |generation: Option<i64>| {
        let mut object = json!({
            "metadata": { "uid": "uid-of-web", "generation": 3 },
            "spec": { "template": template(None) },
        });
        if let Some(generation) = generation {
            object["status"] = json!({ "observedGeneration": generation });
        }
        WorkloadObject::read(Workload::parse("deployment/shop/web").unwrap().kind, &object).unwrap().observed
    };
    assert_eq!([None, Some(2), Some(3)].map(observed), [false, false, true]);
}

fn stage(look: &Look) -> (Stage, String) {
    let analysis = look.analysis(&[], &StagePolicy::default(), Timestamp::from_second(1_000_000).unwrap());
    (analysis.stage, analysis.reason)
}

#[test]
fn the_pod_of_a_lab_is_the_newest_that_is_ready_and_is_kept_while_it_lives() {
    let (old, new) = (pod("old", 60, NOW, "ready/ready"), pod("new", 10, NOW, "ready/ready"));
    let starting = pod("starting", 1, NOW, "ready/starting");
    let all = [old.clone(), new.clone(), starting.clone()];
    assert_eq!(chosen(&all, None), "new");
    assert_eq!(chosen(&all, Some("uid-of-old")), "old");
    assert_eq!(chosen(&all, Some("uid-of-gone")), "new");
    assert_eq!(chosen(&[starting], None), "starting", "its stage is shown while none is ready");
    let mut going = new;
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(chosen(&[old, going], Some("uid-of-new")), "old");
    assert_eq!(chosen(&[pod("earlier", 1, BEFORE, "ready/ready")], None), "", "it has the lab of before");
    let mut forged = pod("forged", 1, NOW, "ready/ready");
    forged["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    assert_eq!(chosen(&[forged.clone()], None), "");
    let gone = deployment(&json!({ "template": template(None) }));
    assert_eq!(seen(Some(&gone), &[forged], None).presence, Presence::Missing, "it hinders no stop");
}

#[test]
fn the_stage_is_that_of_the_lab_and_not_that_of_the_service_beside_it() {
    let state = deployment(&json!({ "template": template(Some(NOW)) }));
    for (status, expected) in [
        ("ready/ready", Stage::Running),
        ("crashes/ready", Stage::Running),
        ("ready/starting", Stage::Starting),
        ("ready/crashes", Stage::Failed),
    ] {
        let look = seen(Some(&state), &[pod("web-abc-1", 60, NOW, status)], None);
        assert_eq!(stage(&look).0, expected, "{status}");
        assert_eq!(look.pod.unwrap().pod.port, Some(40000));
    }
    assert_eq!(stage(&seen(Some(&state), &[], None)), (Stage::Scheduling, "Rollout".to_owned()));
}

/// Everybody who may create pods can write labels, and make a `ReplicaSet` of any name.
#[test]
fn only_a_pod_of_the_workload_s_own_revision_is_the_lab_s() {
    for (kind, uid, is_ours) in [
        ("ReplicaSet", "uid-of-web-abc", true),
        ("ReplicaSet", "uid-of-forged", false),
        ("ReplicaSet", "uid-of-nothing", false),
        ("Deployment", "uid-of-web", false),
        ("Job", "uid-of-web-abc", false),
    ] {
        let mut made = pod("web-abc-1", 60, NOW, "ready/ready");
        made["metadata"]["ownerReferences"][0]["kind"] = kind.into();
        made["metadata"]["ownerReferences"][0]["uid"] = uid.into();
        let expected = if is_ours { "web-abc-1" } else { "" };
        assert_eq!(chosen(&[made.clone()], None), expected, "{kind} {uid}");
        assert_eq!(
            chosen(&[made], Some("uid-of-web-abc-1")),
            expected,
            "{kind} {uid}, also if it was the lab's"
        );
    }
}

#[test]
fn each_way_to_lose_a_workload_has_its_reason() {
    let with = |more: Value| {
        let mut spec = json!({ "template": template(Some(NOW)) });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        deployment(&spec)
    };
    let mut other = with(json!({}));
    other.state.uid = "uid-of-another".to_owned();
    let mut deleting = with(json!({}));
    deleting.state.deleting = true;
    let half = deployment(
        &json!({ "template": { "spec": { "containers": [{ "name": "web" }], "volumes": [{ "name": mark().part("nss") }] } } }),
    );
    let ready = [pod("web-abc-1", 60, NOW, "ready/ready")];
    for (state, reason, presence) in [
        (None, "WorkloadDeleted", Presence::Terminating),
        (Some(&other), "WorkloadDeleted", Presence::Terminating),
        (Some(&deleting), "WorkloadDeleted", Presence::Present),
        (Some(&with(json!({ "replicas": 0 }))), "ScaledToZero", Presence::Present),
        (Some(&deployment(&json!({ "template": template(None) }))), "TakenOut", Presence::Terminating),
        (Some(&deployment(&json!({ "template": template(Some(BEFORE)) }))), "TakenOut", Presence::Present),
        (Some(&half), "TakenOut", Presence::Present),
    ] {
        let look = seen(state, &ready, Some("uid-of-web-abc-1"));
        assert_eq!((stage(&look), look.presence), ((Stage::Terminating, reason.to_owned()), presence));
    }
    let paused = with(json!({ "paused": true }));
    assert_eq!(
        seen(Some(&paused), &[], None).stuck.unwrap(),
        "deployment/shop/web is paused; its pods are replaced when its owner resumes it"
    );
}

/// The effects of one event on a lab.
fn step(lab: &mut Lab, event: Event) -> Vec<Effect> {
    lab.step(event, RestartPolicy::default(), Timestamp::from_second(1_000_000).unwrap())
}

fn running_in(pod: &str) -> Event {
    let analysis = Analysis { stage: Stage::Running, reason: "Ready".to_owned(), ..Analysis::unknown() };
    let pod_uid = Some(pod.to_owned());
    Event::Observed(Box::new(Observed { pod: Presence::Present, pod_uid, analysis, ..Observed::nothing() }))
}

#[test]
fn a_lab_that_moves_is_told_once_and_never_prepares_the_volumes_of_its_user() {
    let limits = TimeLimits { spawn: SignedDuration::from_mins(5), delete: SignedDuration::from_mins(1) };
    let now = Timestamp::from_second(1_000_000).unwrap();
    let operation = limits.operation(NOW.parse().unwrap(), OperationKind::Spawn, now);
    for (kind, prepares, moves) in [(SpawnKind::Injected, false, 1), (SpawnKind::Lab, true, 0)] {
        let mut lab = Lab::absent(limits).of_kind(kind);
        step(&mut lab, Event::SpawnAccepted(operation));
        step(&mut lab, Event::Decided(Ok(LabTimeLimits::default())));
        step(&mut lab, Event::Created(Ok(())));
        let effects = step(&mut lab, running_in("a"));
        assert_eq!(effects.contains(&Effect::MarkProvisioned), prepares);
        let told =
            |effects: &[Effect]| effects.iter().filter(|one| matches!(one, Effect::Restarted(_))).count();
        assert_eq!(told(&step(&mut lab, running_in("b"))), moves);
        assert_eq!(told(&step(&mut lab, running_in("b"))), 0);
        assert_eq!(lab.stage().unwrap().1 == "Moved", moves == 1);
    }
}

#[test]
fn what_somebody_has_copied_of_a_lab_is_removed_and_nothing_else() {
    let object = deployment(&json!({ "template": template(Some(NOW)) }));
    let patch = leftovers(&object.template, &mark(), "injected.wasmspawner.io/test").unwrap();
    let name = mark().container();
    let expected = json!({ "spec": { "template": {
        "metadata": { "labels": { mark().label(): null, "injected.wasmspawner.io/test": null }, "annotations": {} },
        "spec": {
            "containers": [{ "$patch": "delete", "name": name }],
            "initContainers": [],
            "volumes": [{ "$patch": "delete", "name": mark().part("nss") }],
            "imagePullSecrets": [{ "$patch": "delete", "name": mark().part("pull") }],
        },
    } } });
    assert_eq!(patch, expected);
    let mut labelled = template(Some(NOW));
    labelled["metadata"]["labels"]["wasmspawner.io/job-id"] = BEFORE.into();
    let removed = |template: &Value| {
        let object = deployment(&json!({ "template": template }));
        let patch = leftovers(&object.template, &mark(), "injected.wasmspawner.io/test").unwrap();
        patch["spec"]["template"]["metadata"]["labels"].get("wasmspawner.io/job-id").is_some()
    };
    assert!(!removed(&labelled), "the label is that of another operation");
    labelled["metadata"]["labels"]["wasmspawner.io/job-id"] = NOW.into();
    assert!(removed(&labelled));
    let clean = deployment(&json!({ "template": template(None) }));
    assert_eq!(leftovers(&clean.template, &mark(), "injected.wasmspawner.io/test"), None);
    let other = LabMark::from_spawn("another");
    assert_eq!(
        leftovers(&object.template, &other, "injected.wasmspawner.io/test"),
        None,
        "it is another lab's"
    );
}

#[test]
fn a_volume_that_a_container_of_others_mounts_is_theirs() {
    let workload = Workload::parse("deployment/shop/web").unwrap();
    let remains = |template: &Value| {
        let template = deployment(&json!({ "template": template })).template;
        remainder(&workload, "uid-of-web", &template, &mark())
    };
    let mut mounted = template(Some(NOW));
    assert_eq!(remains(&mounted)["spec"], Value::Null);
    let volume = mark().part("nss");
    mounted["spec"]["containers"][1]["volumeMounts"] = json!([{ "name": volume, "mountPath": "/etc" }]);
    assert_eq!(remains(&mounted)["spec"], Value::Null, "the lab's own mount");
    // The same holds for a container whose name looks like a lab's.
    for (place, name) in [("containers", "web"), ("initContainers", "lab-0123456789")] {
        let mut taken = mounted.clone();
        let mounts = json!([{ "name": volume, "mountPath": "/stolen" }]);
        let container = json!({ "name": name, "volumeMounts": mounts });
        let containers = taken["spec"][place].as_array().cloned().unwrap_or_default();
        taken["spec"][place] = containers.into_iter().chain([container]).collect();
        let left = remains(&taken);
        assert_eq!(left["spec"]["template"]["spec"], json!({ "volumes": [{ "name": volume }] }));
        let object = deployment(&json!({ "template": taken }));
        let patch = leftovers(&object.template, &mark(), "injected.wasmspawner.io/test").unwrap();
        assert_eq!(patch["spec"]["template"]["spec"]["volumes"], json!([]), "{place}");
        assert!(object.state.labs.contains_key(&mark()));
    }
    // The remaining parts are not a lab.
    let after = json!({ "spec": {
        "containers": [{ "name": "web", "volumeMounts": [{ "name": volume, "mountPath": "/mine" }] }],
        "volumes": [{ "name": volume }],
    } });
    let object = deployment(&json!({ "template": after }));
    assert!(object.state.labs.is_empty());
    assert_eq!(leftovers(&object.template, &mark(), "injected.wasmspawner.io/test"), None);
}
