//! `kubernetes.namespaces: single`: all labs are in one namespace, which is not the service's.

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::{until_running, until_some};

use super::kernels;
use super::running::until;
use crate::BINARY;

fn single(config: &mut Value) {
    config["embedded"]["keep_labs"] = true.into();
    config["kubernetes"] = json!({ "namespaces": "single" });
    config["names"] = json!({ "namespace": "labs" });
}

#[tokio::test]
async fn labs_share_a_namespace_that_the_service_does_not_change() {
    let mut service = Service::start_with(BINARY, single).await.unwrap();
    let client = service.cluster().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let before = namespaces.get("labs").await.unwrap().metadata;
    let (ada, grace) = (service.user("ada").unwrap(), service.user("grace").unwrap());
    for (user, name) in [(&ada, "ada"), (&grace, "grace")] {
        let events = user.spawn_to_end(name).await.unwrap();
        assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    }
    service.crash_and_restart().await.unwrap();
    ada.stop_to_end("ada").await.unwrap();
    // The service may not have had time to record that her lab is ready.
    until(&grace, "grace", |lab| lab["status"] == "running").await;
    let client = service.cluster().await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "labs");
    let left = pods.list(&ListParams::default()).await.unwrap().items;
    let left: Vec<_> = left.into_iter().filter_map(|pod| pod.metadata.name).collect();
    assert_eq!(left, ["nb-grace"]);
    let after = Api::<Namespace>::all(client).get("labs").await.unwrap().metadata;
    assert_eq!((after.uid, after.labels), (before.uid, before.labels));
}

/// No `ResourceQuota` counts there, so the service does this itself.
#[tokio::test]
async fn all_that_a_user_has_shares_the_user_s_quota() {
    let quota = |config: &mut Value| {
        single(config);
        let policy = json!({
            "name": "default",
            "path": wasmspawner_tests::guests::component("policy-default"),
            "config": {
                "quota": { "default": { "cpu": 8, "memory": "64Gi" } },
                "sizes": [{ "name": "half", "cpu": 2, "memory": "1Gi" }],
            },
        });
        config["policies"] = json!([policy]);
        config["lab"]["image"] = "registry.example.org/lab:1".into();
        config["limits"] = json!({ "per_user": {
            "kernels": 100, "kernel_starts_per_minute": 1000, "requests_per_second": 1000, "requests_at_once": 500,
        } });
    };
    let (mut service, ada) = kernels::with_lab("ada", quota).await;
    let names: Vec<String> = (0..40).map(|number| format!("k{number}")).collect();
    let many = join_all(names.iter().map(|name| kernels::start_in_turn(&ada, "ada", name))).await;
    assert!(many.iter().all(|answer| answer.status == 201), "{many:?}");
    let settled = join_all(
        names.iter().map(|name| kernels::until(&ada, "ada", name, |kernel| kernel["status"] != "starting")),
    )
    .await;
    let running: Vec<&Value> = settled.iter().filter(|kernel| kernel["status"] == "running").collect();
    assert_eq!(running.len(), 3, "a lab of two CPUs and three kernels use up eight");
    let failed = settled.iter().find(|kernel| kernel["status"] == "failed").unwrap();
    assert_eq!(failed["reason"], "QuotaExceeded");
    let message = failed["message"].as_str().unwrap();
    assert!(
        message.starts_with("Your quota of CPUs is 8; you have 8 already, and this would take 2 more."),
        "{message}"
    );
    // Objects that were found after a restart count. Resources that are given back can be taken again.
    service.crash_and_restart().await.unwrap();
    let ada = service.user("ada").unwrap();
    let first = running[0]["id"].as_str().unwrap();
    kernels::until(&ada, "ada", first, |kernel| kernel["status"] == "running").await;
    kernels::start(&ada, "ada", "more").await;
    kernels::until(&ada, "ada", "more", |kernel| kernel["status"] == "failed").await;
    kernels::stop(&ada, "ada", first).await;
    kernels::until(&ada, "ada", first, Value::is_null).await;
    kernels::run(&ada, "ada", "more").await;
}

/// Such a lab could mount the site's secrets, and its objects would be among the records.
#[tokio::test]
async fn a_user_named_like_the_service_s_namespace_gets_no_lab_there() {
    let by_name = |config: &mut Value| {
        config["kubernetes"] = json!({ "namespaces": "retain" });
        config["names"] = json!({ "namespace": "{username}" });
    };
    let service = Service::start_with(BINARY, by_name).await.unwrap();
    let intruder = service.user("wasmspawner").unwrap();
    let answer = intruder.spawn("wasmspawner").await.unwrap();
    assert!(answer.status == 422 && answer.body.contains("the service's own namespace"), "{answer:?}");
    let pods: Api<Pod> = Api::namespaced(service.cluster().await.unwrap(), "wasmspawner");
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
}

/// The service would see nothing of such a lab, consider it gone, and leave its pod running.
#[tokio::test]
async fn a_lab_in_another_namespace_must_be_stopped_before_all_labs_are_in_one() {
    let keeping = |config: &mut Value| config["embedded"]["keep_labs"] = true.into();
    let mut service = Service::start_with(BINARY, keeping).await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    service.sync().await.unwrap();
    service.kill();

    service.reconfigure(single).unwrap();
    let log = service.folder().join("log");
    let told = async || {
        let log = std::fs::read_to_string(&log).unwrap();
        log.contains("lab-ada is in the namespace nublado-ada").then_some(())
    };
    tokio::select! {
        () = until_some(told) => {}
        started = service.run() => assert!(started.is_err(), "it may not become ready"),
    }
    service.kill();

    service
        .reconfigure(|config| {
            keeping(config);
            for section in ["kubernetes", "names"] {
                config.as_object_mut().unwrap().remove(section);
            }
        })
        .unwrap();
    service.run().await.unwrap();
    // The lab was left as it was.
    until_running(&ada, "ada").await;
    ada.stop_to_end("ada").await.unwrap();
}
