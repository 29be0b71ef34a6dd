//! Init containers that prepare a new user's home, and the fields that identify its owner for them.

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

/// A site that prepares homes.
fn preparing(config: &mut Value) {
    let settings = json!({
        "volumes": [{ "name": "homes", "nfs": { "server": "nfs.example.org", "path": "/export/{gid}" } }],
        "mounts": [{ "volume": "homes", "path": "{home}", "sub_path": "{uid}" }],
        "env": { "NUMBERS": "{uid} {gid} {supplemental_gids}" },
        "init_containers": [{
            "name": "provision", "image": "setup:1", "command": ["sh", "-c"], "run": "until-provisioned",
            "args": ["mkdir -p /homes/{uid} && chown {uid}:{gid} /homes/{uid}"],
            "mounts": [{ "volume": "homes", "path": "/homes" }],
        }],
    });
    let policy =
        json!({ "name": "default", "path": guests::component("policy-default"), "config": settings });
    config["policies"].as_array_mut().unwrap().insert(0, policy);
}

/// Returns the pod of a lab, as soon as it exists.
async fn pod(service: &Service, namespace: &str, name: &str) -> Pod {
    let pods: Api<Pod> = Api::namespaced(service.cluster().await.unwrap(), namespace);
    until_some(async || pods.get_opt(name).await.unwrap()).await
}

fn init_containers(pod: Pod) -> Vec<Container> {
    pod.spec.unwrap().init_containers.unwrap_or_default()
}

#[tokio::test]
async fn a_home_is_prepared_until_a_lab_of_its_user_has_started() {
    let mut service = Service::start_with(BINARY, preparing).await.unwrap();
    let ada = service.user("ada").unwrap();
    let is_prepared = async |service: &Service, namespace: &str, name: &str| {
        !init_containers(pod(service, namespace, name).await).is_empty()
    };

    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert!(is_prepared(&service, "nublado-ada", "nb-ada").await);
    ada.stop_to_end("ada").await.unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    assert!(!is_prepared(&service, "nublado-ada", "nb-ada").await, "once");

    ada.stop_to_end("ada").await.unwrap();
    service.crash_and_restart().await.unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    assert!(!is_prepared(&service, "nublado-ada", "nb-ada").await, "also after a restart");
}

/// Two servers that start at the same time cannot rely on each other. None of these becomes ready.
#[tokio::test]
async fn each_of_two_servers_that_start_prepares_the_home() {
    let service = Service::start_with(BINARY, preparing).await.unwrap();
    let name = "fault.not-ready";
    let user = service.user(name).unwrap();
    for server in [name.to_owned(), format!("{name}/servers/gpu")] {
        assert_eq!(user.spawn(&server).await.unwrap().status, 303);
    }
    let pods: Api<Pod> = Api::all(service.cluster().await.unwrap());
    let both = until_some(async || {
        let found = pods.list(&ListParams::default()).await.unwrap().items;
        (found.len() == 2).then_some(found)
    });
    assert!(both.await.into_iter().all(|pod| init_containers(pod).len() == 1));
}

#[tokio::test]
async fn a_home_is_prepared_again_after_a_start_that_failed() {
    let service = Service::start_with(BINARY, preparing).await.unwrap();
    let name = "fault.not-ready";
    let user = service.user(name).unwrap();
    for _ in 0..2 {
        assert_eq!(user.spawn(name).await.unwrap().status, 303);
        let pods: Api<Pod> = Api::all(service.cluster().await.unwrap());
        let found = until_some(async || pods.list(&ListParams::default()).await.unwrap().items.pop()).await;
        assert_eq!(init_containers(found).len(), 1);
        user.stop_to_end(name).await.unwrap();
    }
}

#[tokio::test]
async fn templates_know_the_numbers_and_the_home_of_the_lab_s_user() {
    let service = Service::start_with(BINARY, |config| {
        preparing(config);
        config["auth"]["identities"] = json!({ "users": { "ada": {
            "uid": 4711, "gid": 100,
            "groups": [{ "name": "users", "id": 100 }, { "name": "sky", "id": 2001 }, { "name": "sea", "id": 2002 }],
        } } });
    })
    .await
    .unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let pod = pod(&service, "nublado-ada", "nb-ada").await;
    let spec = serde_json::to_value(pod.spec.as_ref().unwrap()).unwrap();
    let volume = spec["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == "homes").unwrap();
    assert_eq!(volume["nfs"]["path"], "/export/100");
    let mounts = spec["containers"][0]["volumeMounts"].as_array().unwrap();
    let home = mounts.iter().find(|mount| mount["name"] == "homes").unwrap();
    assert_eq!((&home["mountPath"], &home["subPath"]), (&json!("/home/ada"), &json!("4711")));
    let init = &init_containers(pod)[0];
    assert_eq!(init.args.as_ref().unwrap()[0], "mkdir -p /homes/4711 && chown 4711:100 /homes/4711");
    let lab = ada.lab("ada").await.unwrap().json().unwrap();
    assert_eq!(lab["env"]["NUMBERS"], "4711 100 2001,2002", "{lab:#}");
}

#[test]
fn names_do_not_depend_on_what_the_identity_provider_says() {
    let service = Service::prepare(BINARY, |config| config["names"] = json!({ "pod": "nb-{uid}" })).unwrap();
    let end = service.run_to_end().unwrap();
    let said = String::from_utf8_lossy(&end.stderr).into_owned();
    assert!(!end.status.success() && said.contains("names.pod: ") && said.contains("{uid}"), "{said}");
}
