//! The records of labs: the output of kubectl, and the state that a restart reads from them.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use wasmspawner_tests::api::Client;
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use super::running::until;
use crate::BINARY;

pub(crate) async fn records(service: &Service) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("wasmspawner.io", "v1alpha1", "Spawn"));
    Api::namespaced_with(service.cluster().await.unwrap(), "wasmspawner", &kind)
}

/// Waits until the record of a lab contains its readiness, which is a moment after the lab runs.
pub(crate) async fn is_recorded_as_ready(service: &Service, record: &str) {
    let records = records(service).await;
    until_some(async || {
        let record = records.get(record).await.unwrap();
        record.data["status"]["readyAt"].is_string().then_some(())
    })
    .await;
}

/// Waits until an object is gone.
pub(crate) async fn gone<K>(api: &Api<K>, name: &str)
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    until_some(async || api.get_opt(name).await.unwrap().is_none().then_some(())).await;
}

/// Waits until the service, too, knows that a lab without a record is gone. Until then the lab is still being stopped.
async fn stays_stopped(client: &Client, lab: &str) {
    let stopped = until(client, lab, |lab| lab["status"] != "terminating").await;
    assert_eq!(stopped, Value::Null, "what was stopped runs again");
}

pub(crate) fn keeping(config: &mut Value) {
    config["embedded"]["keep_labs"] = true.into();
}

/// Lets the service delete the namespace of a lab together with the lab.
pub(crate) fn deleting_at_once(config: &mut Value) {
    config["kubernetes"]["delete_namespaces_after"] = "0s".into();
}

fn keeping_labs_alone(config: &mut Value) {
    keeping(config);
    deleting_at_once(config);
}

/// The quota of the user is that of the namespace, too.
fn with_quotas(config: &mut Value) {
    let quota = json!({ "quota": { "default": { "cpu": 8, "memory": "16Gi" } } });
    let default = json!({ "name": "default", "path": guests::component("policy-default"), "config": quota });
    config["policies"].as_array_mut().unwrap().insert(0, default);
}

#[tokio::test]
async fn a_lab_has_a_record_as_long_as_it_exists() {
    let service = Service::start_with(BINARY, deleting_at_once).await.unwrap();
    let ada = service.user("ada").unwrap();
    let records = records(&service).await;
    let env = json!({ "options": { "size": "small" }, "env": { "A": "not-for-records", "JUPYTERHUB_API_TOKEN": "s3cr3t" } });
    assert_eq!(ada.spawn_with("ada/servers/gpu", &env).await.unwrap().status, 303);
    let starting = records.get("lab-ada--gpu").await.unwrap();
    assert_eq!(starting.data["spec"]["desired"], "Running", "written before the answer");
    ada.events("ada/servers/gpu").await.unwrap().to_end().await.unwrap();
    until_record(&records, "lab-ada--gpu", |record| record["status"]["readyAt"].is_string()).await;
    let running = records.get("lab-ada--gpu").await.unwrap();
    let (spec, status) = (&running.data["spec"], &running.data["status"]);
    assert_eq!((&spec["kind"], &spec["user"], &spec["name"]), (&json!("Lab"), &json!("ada"), &json!("gpu")));
    assert_eq!((&spec["operation"]["requestedBy"], &status["status"]), (&json!("ada"), &json!("running")));
    assert_eq!(status["conditions"][0]["status"], "True", "{status:#}");
    let text = running.data.to_string();
    assert!(!text.contains("not-for-records") && !text.contains("s3cr3t"), "{text}");

    assert_eq!(ada.stop("ada/servers/gpu").await.unwrap().status, 202);
    gone(&records, "lab-ada--gpu").await;
    let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
    assert!(namespaces.get_opt("nublado-ada--gpu").await.unwrap().is_none(), "the record goes last");
}

pub(crate) async fn until_record(api: &Api<DynamicObject>, name: &str, wanted: impl Fn(&Value) -> bool) {
    until_some(async || api.get_opt(name).await.unwrap().filter(|record| wanted(&record.data))).await;
}

#[tokio::test]
async fn deleting_a_record_stops_the_lab() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    let records = records(&service).await;
    ada.spawn_to_end("ada").await.unwrap();
    records.delete("lab-ada", &DeleteParams::default()).await.unwrap();
    until(&ada, "ada", Value::is_null).await;
    gone(&records, "lab-ada").await;
    let pods: Api<Pod> = Api::all(service.cluster().await.unwrap());
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
}

#[tokio::test]
async fn a_stop_that_was_accepted_survives_a_crash_before_its_first_request() {
    let mut service = Service::prepare(BINARY, keeping_labs_alone).unwrap();
    service.meets("abort before delete Pod");
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    // The service may die before it answers; the lab is stopped in either case.
    let _ = ada.stop("ada").await;
    service.death().await.unwrap();
    service.run().await.unwrap();
    until(&ada, "ada", Value::is_null).await;
    gone(&records(&service).await, "lab-ada").await;
}

#[tokio::test]
async fn a_pod_that_is_pending_past_its_deadline_is_not_running() {
    let hasty = |config: &mut Value| {
        keeping(config);
        config["limits"] = json!({ "spawn": "10s" });
    };
    let mut service = Service::start_with(BINARY, hasty).await.unwrap();
    let name = "fault.not-ready";
    let user = service.user(name).unwrap();
    assert_eq!(user.spawn(name).await.unwrap().status, 303);
    user.events(name).await.unwrap().next_of("stage").await.unwrap();
    service.kill();
    // Only time has to pass.
    tokio::time::timeout(Duration::from_secs(11), std::future::pending::<()>()).await.unwrap_err();
    service.run().await.unwrap();
    let lab = until(&user, name, |lab| lab["status"] != "starting").await;
    assert_eq!((&lab["status"], &lab["reason"]), (&json!("failed"), &json!("SpawnTimeout")), "{lab:#}");
}

/// The service dies before, and after, each request of a spawn and of a stop. After that a spawn is complete, or has
/// failed because its Secret was not written yet; a stop is complete, no object is left, and the next spawn works.
#[tokio::test]
async fn a_crash_at_any_request_leaves_no_operation_unfinished() {
    let points = [
        "before create Spawn",
        "after create Spawn",
        "before create Namespace",
        "after create Namespace",
        "before create Secret",
        "after create Secret",
        "before create ResourceQuota",
        "after create ResourceQuota",
        "after create ConfigMap",
        "before create Pod",
        "after create Pod",
        "before update Spawn",
        "after update Spawn",
        "before delete Pod",
        "after delete Pod",
        "before delete Namespace",
        "after delete Namespace",
        "before delete Spawn",
        "after delete Spawn",
    ];
    for point in points {
        let mut service = Service::prepare(BINARY, |config| {
            keeping_labs_alone(config);
            with_quotas(config);
        })
        .unwrap();
        service.meets(&format!("abort {point}"));
        service.run().await.unwrap();
        let ada = service.user("ada").unwrap();
        // The service may die during each of these requests.
        let spawned = ada.spawn("ada").await.is_ok_and(|answer| answer.status == 303);
        if spawned && let Ok(mut events) = ada.events("ada").await {
            let _ = events.to_end().await;
        }
        let stopped = ada.stop("ada").await.is_ok_and(|answer| answer.status == 202);
        service.death().await.unwrap_or_else(|error| panic!("{point}: {error}"));
        service.run().await.unwrap();

        let records = records(&service).await;
        if stopped {
            gone(&records, "lab-ada").await;
            stays_stopped(&ada, "ada").await;
        } else {
            let settled = |lab: &Value| lab["status"] != "starting" && lab["status"] != "terminating";
            let lab = until(&ada, "ada", settled).await;
            let expected = [json!("running"), json!("failed"), Value::Null];
            assert!(expected.contains(&lab["status"]), "{point}: {lab:#}");
            let without_secret =
                ["before create Namespace", "after create Namespace", "before create Secret"];
            // The Secret and the quota are created at the same time.
            let is_open = point.contains("ResourceQuota");
            if spawned && without_secret.contains(&point) {
                assert_eq!(lab["reason"], "Interrupted", "{point}: {lab:#}");
            } else if spawned && !point.contains("delete") && !is_open {
                assert_eq!(lab["status"], "running", "{point}: {lab:#}");
            }
            if lab["status"] == "running" {
                assert_eq!(ada.stop("ada").await.unwrap().status, 202, "{point}");
                until(&ada, "ada", Value::is_null).await;
            }
        }
        let events = ada.spawn_to_end("ada").await.unwrap_or_else(|error| panic!("{point}: {error}"));
        assert_eq!(events.last().unwrap().kind, "complete", "{point}: {events:#?}");
        assert_eq!(ada.stop("ada").await.unwrap().status, 202, "{point}");
        gone(&records, "lab-ada").await;
        let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
        assert!(namespaces.get_opt("nublado-ada").await.unwrap().is_none(), "{point}");
    }
}

/// Objects of one decision are never mixed with those of another, whichever object differs.
#[tokio::test]
async fn a_spawn_that_was_cut_off_does_not_go_on_as_another_lab() {
    for change in
        [json!({ "env": { "NEW": "value" } }), json!({ "annotations": { "example.org/team": "physics" } })]
    {
        let mut service = Service::prepare(BINARY, keeping).unwrap();
        service.meets("abort before create Pod");
        service.run().await.unwrap();
        let ada = service.user("ada").unwrap();
        assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
        service.death().await.unwrap();
        let otherwise = |config: &mut Value| {
            keeping(config);
            config["lab"] = change.clone();
        };
        service.reconfigure(otherwise).unwrap();
        service.run().await.unwrap();
        let lab = until(&ada, "ada", |lab| lab["status"] != "starting").await;
        assert_eq!((&lab["status"], &lab["reason"]), (&json!("failed"), &json!("Interrupted")), "{lab:#}");
        let events = ada.spawn_to_end("ada").await.unwrap();
        assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    }
}

#[tokio::test]
async fn a_driver_that_panics_is_replaced() {
    let mut service = Service::prepare(BINARY, |_| {}).unwrap();
    service.meets("panic observe running once.oom");
    service.run().await.unwrap();
    let name = "once.oom";
    let user = service.user(name).unwrap();
    user.spawn_to_end(name).await.unwrap();
    let mut again = tokio::time::interval(Duration::from_millis(50));
    let panicked = async {
        while !service.probes().get("/metrics").await.unwrap().body.contains("driver_panics_total 1") {
            again.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), panicked).await.unwrap();
    until(&user, name, |lab| lab["status"] == "running").await;
    // A stop of the lab is refused with an error until its driver is replaced, which takes a moment.
    let stopped = async {
        loop {
            again.tick().await;
            match user.stop(name).await.unwrap().status {
                202 => return,
                status => assert_eq!(status, 503),
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), stopped).await.unwrap();
    until(&user, name, Value::is_null).await;
}

#[tokio::test]
async fn kubectl_lists_records_and_stops_labs() {
    if std::process::Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        return println!("skipped: there is no kubectl");
    }
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada/servers/gpu").await.unwrap();
    let records = records(&service).await;
    until_record(&records, "lab-ada--gpu", |record| record["status"]["readyAt"].is_string()).await;
    let kubectl = |args: &[&str]| {
        let mut command = std::process::Command::new("kubectl");
        command.arg("--kubeconfig").arg(service.folder().join("state/kubeconfig"));
        let output = command.args(["-n", "wasmspawner"]).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let table = kubectl(&["get", "sp"]);
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(lines.next().unwrap(), ["NAME", "KIND", "USER", "NAME", "STATUS", "STAGE", "AGE"]);
    assert_eq!(lines.next().unwrap()[..6], ["lab-ada--gpu", "Lab", "ada", "gpu", "running", "Running"]);
    let described = kubectl(&["describe", "spawn", "lab-ada--gpu"]);
    assert!(described.contains("Ready At:") && described.contains("nublado-ada--gpu"), "{described}");
    kubectl(&["wait", "--for=condition=Ready", "spawn/lab-ada--gpu", "--timeout=60s"]);
    kubectl(&["delete", "spawn", "lab-ada--gpu", "--timeout=60s"]);
    stays_stopped(&ada, "ada/servers/gpu").await;
}

/// The API server may create a record after the service has given up waiting for the answer.
#[tokio::test]
async fn a_record_that_appears_late_is_adopted() {
    let often = |config: &mut Value| config["limits"]["reconcile_every"] = "1s".into();
    let service = Service::start_with(BINARY, often).await.unwrap();
    let (turing, hopper) = (service.user("turing").unwrap(), service.user("hopper").unwrap());
    turing.spawn_to_end("turing").await.unwrap();
    let spawns = records(&service).await;
    until_record(&spawns, "lab-turing", |record| record["status"]["readyAt"].is_string()).await;
    let text =
        serde_json::to_string(&spawns.get("lab-turing").await.unwrap()).unwrap().replace("turing", "hopper");
    let mut late: DynamicObject = serde_json::from_str(&text).unwrap();
    late.metadata = ObjectMeta {
        name: late.metadata.name,
        labels: late.metadata.labels,
        finalizers: late.metadata.finalizers,
        ..ObjectMeta::default()
    };
    let status = late.data["status"].as_object_mut().unwrap();
    status.remove("readyAt").unwrap();
    status.insert("status".to_owned(), "starting".into());
    spawns.create(&PostParams::default(), &late).await.unwrap();
    let lab = until(&hopper, "hopper", |lab| lab["status"] == "failed").await;
    assert_eq!(lab["reason"], "Interrupted", "{lab:#}");
    let events = hopper.spawn_to_end("hopper").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
}
