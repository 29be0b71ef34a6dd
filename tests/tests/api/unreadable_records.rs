//! Records from which the service cannot go on: their labs may run, so they are neither gone nor anybody's orphans.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::{until_running, until_some};

use super::kernels;
use super::records::{is_recorded_as_ready, keeping, records};
use super::running::until;
use crate::BINARY;

/// Each look for records without a driver finds the lab again.
fn looking_often(config: &mut Value) {
    keeping(config);
    config["limits"]["reconcile_every"] = "1s".into();
}

/// After a rollback, a record may have words of the newer version. Its lab runs, so it is neither gone nor anybody's
/// orphan, and nothing may be deleted until the record can be read.
#[tokio::test]
async fn a_lab_whose_record_cannot_be_read_is_left_as_it_is() {
    let mut service = Service::start_with(BINARY, looking_often).await.unwrap();
    let (ada, grace) = (service.user("ada").unwrap(), service.user("grace").unwrap());
    for (client, user) in [(&ada, "ada"), (&grace, "grace")] {
        client.spawn_to_end(user).await.unwrap();
        is_recorded_as_ready(&service, &format!("lab-{user}")).await;
    }
    let (spawns, params) = (records(&service).await, PatchParams::default());
    // The definition allows it, and this version knows no such place.
    let of_next_version = Patch::Merge(json!({ "spec": { "place": { "certificate": "service" } } }));
    spawns.patch("lab-ada", &params, &of_next_version).await.unwrap();

    service.crash_and_restart().await.unwrap();
    let (admin, hub) = (service.admin().unwrap(), service.hub().unwrap());
    until_running(&grace, "grace").await;
    assert_eq!(ada.lab("ada").await.unwrap().problem().unwrap(), "503 unreadable_record");
    let lookup = ada.get(&format!("{PREFIX}/lab-lookup?user_string=ada")).await.unwrap();
    assert_eq!(lookup.problem().unwrap(), "503 unreadable_record");
    assert_eq!(ada.spawn("ada").await.unwrap().problem().unwrap(), "503 unreadable_record");
    assert_eq!(ada.stop("ada").await.unwrap().problem().unwrap(), "503 unreadable_record");
    let delete = |path: &str| hub.request(http::Method::DELETE, &format!("{PREFIX}{path}"));
    let released = hub.send(delete("/labs/grace/volumes")).await.unwrap();
    assert_eq!(released.problem().unwrap(), "409 unreadable_records", "a pool may use what others share");

    let orphans = admin.get(&format!("{PREFIX}/orphans")).await.unwrap().json().unwrap();
    assert_eq!(orphans, json!([]), "the lab's objects are nobody's");
    let deletion = admin.send(admin.request(http::Method::DELETE, &format!("{PREFIX}/orphans")));
    assert_eq!(deletion.await.unwrap().problem().unwrap(), "409 unreadable_records");
    let metrics = service.probes().get("/metrics").await.unwrap().body;
    assert!(metrics.contains("wasmspawner_unreadable_records 1"), "{metrics}");
    let pods: Api<Pod> = Api::namespaced(service.cluster().await.unwrap(), "nublado-ada");
    assert!(pods.get("nb-ada").await.unwrap().metadata.deletion_timestamp.is_none());
    // Everybody else goes on.
    assert_eq!(grace.stop("grace").await.unwrap().status, 202);
    until(&grace, "grace", Value::is_null).await;

    let spawns = records(&service).await;
    let corrected = Patch::Merge(json!({ "spec": { "place": { "certificate": null } } }));
    spawns.patch("lab-ada", &params, &corrected).await.unwrap();
    until_some(async || {
        let status = ada.lab("ada").await.unwrap().status;
        assert!(matches!(status, 200 | 503), "it is never gone: {status}");
        (status == 200).then_some(())
    })
    .await;
    until_running(&ada, "ada").await;
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    until(&ada, "ada", Value::is_null).await;
}

#[tokio::test]
async fn a_lab_that_no_driver_can_take_over_is_left_as_it_is_at_each_look() {
    let (mut service, ada) = kernels::with_lab("ada", looking_often).await;
    kernels::run(&ada, "ada", "k1").await;
    is_recorded_as_ready(&service, "lab-ada").await;
    service.meets("panics recover lab-ada");
    service.crash_and_restart().await.unwrap();

    until_some(async || {
        assert_eq!(ada.lab("ada").await.unwrap().problem().unwrap(), "503 unreadable_record");
        let metrics = service.probes().get("/metrics").await.unwrap().body;
        assert!(metrics.contains("wasmspawner_unreadable_records 1"), "{metrics}");
        let panics = metrics.lines().find_map(|line| line.strip_prefix("wasmspawner_driver_panics_total "));
        panics.is_some_and(|panics| panics.parse::<f64>().unwrap() >= 4.0).then_some(())
    })
    .await;
    let orphans = service.admin().unwrap().get(&format!("{PREFIX}/orphans")).await.unwrap();
    assert_eq!(orphans.json().unwrap(), json!([]));
    assert_eq!(ada.get(&kernels::path("ada", "k1")).await.unwrap().json().unwrap()["status"], "running");
    for pod in kernels::pods(&service.cluster().await.unwrap(), "nublado-ada").await {
        assert!(pod.metadata.deletion_timestamp.is_none(), "{pod:?}");
    }
}
