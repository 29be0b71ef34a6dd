//! Labs of administrators, with less than the security baseline.

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::Client;
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;

use super::running::until;
use crate::BINARY;

/// A site on which ada, and nobody else, is one of the operators. Everybody may ask for the profile `root`.
fn site(config: &mut Value) {
    let lifts = json!({ "groups": ["operators"], "root": true, "privileged": true, "paths": ["/scratch"] });
    config["auth"]["identities"]["users"] =
        json!({ "ada": { "uid": 1000, "gid": 1000, "groups": [{ "name": "operators", "id": 20 }] } });
    config["lab"]["administrators"] = lifts.clone();
    config["policies"] = json!([{
        "name": "default",
        "path": guests::component("policy-default"),
        "grants": { "administrators": lifts },
        "config": { "profile_list": [
            { "display_name": "Small", "default": true, "kubespawner_override": { "image": "lab:1" } },
            { "display_name": "Root", "kubespawner_override": {
                "image": "lab:1", "uid": 0, "privileged": true,
                "volumes": [{ "name": "scratch", "hostPath": { "path": "/scratch/shared" } }],
                "volume_mounts": [{ "name": "scratch", "mountPath": "/scratch" }],
            } },
        ] },
    }]);
}

async fn spawn(user: &Client, name: &str, profile: &str) -> String {
    let body = json!({ "options": { "profile": profile } });
    let answer = user.spawn_with(name, &body).await.unwrap();
    assert_eq!(answer.status, 303, "{answer:?}");
    user.events(name).await.unwrap().to_end().await.unwrap().last().unwrap().kind.clone()
}

async fn pod(client: &kube::Client, user: &str) -> Pod {
    Api::namespaced(client.clone(), &format!("nublado-{user}")).get(&format!("nb-{user}")).await.unwrap()
}

async fn level(client: &kube::Client, user: &str) -> Option<String> {
    let namespace = Api::<Namespace>::all(client.clone()).get(&format!("nublado-{user}")).await.unwrap();
    namespace.metadata.labels.unwrap().remove("pod-security.kubernetes.io/enforce")
}

fn privileges(pod: &Pod) -> (Option<bool>, Option<i64>, Option<bool>) {
    let context = pod.spec.as_ref().unwrap().containers[0].security_context.clone().unwrap();
    (context.privileged, context.run_as_user, context.run_as_non_root)
}

#[tokio::test]
async fn an_administrators_lab_is_lifted_told_apart_and_leaves_nothing_to_the_next_lab() {
    let mut service = Service::start_with(BINARY, site).await.unwrap();
    let ada = service.user("ada").unwrap();
    assert_eq!(spawn(&ada, "ada", "root").await, "complete");
    let client = service.cluster().await.unwrap();
    let lab = pod(&client, "ada").await;
    assert_eq!(privileges(&lab), (Some(true), Some(0), Some(false)));
    assert_eq!(lab.metadata.labels.unwrap()["wasmspawner.io/lifted"], "true");
    assert_eq!(level(&client, "ada").await.as_deref(), Some("privileged"));

    let lifted = json!(["root", "privileged", "/scratch/shared"]);
    let shown = async |service: &Service| {
        let lab = service.admin().unwrap().lab("ada").await.unwrap().json().unwrap();
        assert_eq!(lab["lifted"], lifted, "{lab:#}");
        assert!(lab["decided_by"]["policy `default`, by its grant administrators"].is_array(), "{lab:#}");
        let metrics = service.probes().get("/metrics").await.unwrap().body;
        assert!(metrics.contains("wasmspawner_lifted_labs 1\n"), "{metrics}");
    };
    shown(&service).await;
    service.crash_and_restart().await.unwrap();
    let ada = service.user("ada").unwrap();
    until(&ada, "ada", |lab| lab["status"] == "running").await;
    shown(&service).await;

    // The next lab of the same server has the baseline, and so has its namespace.
    ada.stop_to_end("ada").await.unwrap();
    assert_eq!(spawn(&ada, "ada", "small").await, "complete");
    let client = service.cluster().await.unwrap();
    let lab = pod(&client, "ada").await;
    assert_eq!(privileges(&lab), (None, None, Some(true)));
    assert!(!lab.metadata.labels.unwrap().contains_key("wasmspawner.io/lifted"));
    assert_eq!(level(&client, "ada").await.as_deref(), Some("restricted"));
    let lab = ada.lab("ada").await.unwrap().json().unwrap();
    assert!(lab.get("lifted").is_none(), "{lab:#}");
}

#[tokio::test]
async fn nobody_else_gets_such_a_lab_whoever_starts_it() {
    let service = Service::start_with(BINARY, site).await.unwrap();
    let grace = service.user("grace").unwrap();
    assert_eq!(spawn(&grace, "grace", "root").await, "failed");
    let lab = grace.lab("grace").await.unwrap().json().unwrap();
    assert_eq!((&lab["status"], &lab["pod"]), (&json!("failed"), &json!("missing")), "{lab:#}");
    service.logged("needs the grant `administrators` for `/scratch/shared`").await.unwrap();

    // The rights of the administrator who starts a lab for somebody else do not count.
    assert_eq!(spawn(&service.admin().unwrap(), "eve", "root").await, "failed");
    let client = service.cluster().await.unwrap();
    let pods = Api::<Pod>::all(client).list(&ListParams::default()).await.unwrap();
    assert!(pods.items.is_empty());
}
