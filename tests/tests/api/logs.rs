//! `/labs/{username}/logs`

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

/// A service whose labs are processes: the first run of a lab fails, the second one stays.
async fn with_processes() -> Service {
    let mut service = Service::prepare(BINARY, |_| {}).unwrap();
    let ran = service.folder().join("ran").display().to_string();
    let script = format!(
        "echo API_TOKEN=s3cret; if [ -e {ran} ]; then echo second run; exec sleep 300; fi; \
         touch {ran}; echo first run; exit 3"
    );
    service
        .reconfigure(|config| {
            let lab = json!({ "match": "*", "command": ["/bin/sh", "-c", script], "pod_command": "ignored" });
            config["embedded"]["runtime"] = json!("process");
            config["embedded"]["images"] = json!([lab]);
            config["lab"]["readiness_probe"] = Value::Null;
            config["limits"]["restarts"] = json!(5);
        })
        .unwrap();
    service.run().await.unwrap();
    service
}

async fn logs(client: &Client, rest: &str) -> Answer {
    client.get(&format!("{PREFIX}/labs/{rest}")).await.unwrap()
}

#[tokio::test]
async fn the_owner_and_administrators_read_the_last_lines_without_credentials() {
    let service = with_processes().await;
    let (ada, admin) = (service.user("ada").unwrap(), service.admin().unwrap());
    assert_eq!(logs(&ada, "ada/logs").await.problem().unwrap(), "404 unknown_lab");
    assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
    let previous = until_some(async || {
        let answer = logs(&ada, "ada/logs?previous=true").await;
        (answer.status == 200).then(|| answer.json().unwrap())
    })
    .await;
    assert_eq!(previous["lines"], json!(["API_TOKEN=<redacted>", "first run"]));
    let expected = json!({
        "username": "ada", "server": "", "pod": "nb-ada", "container": "notebook", "previous": false,
        "lines": ["API_TOKEN=<redacted>", "second run"], "truncated": false,
    });
    for client in [&ada, &admin] {
        let log = until_some(async || {
            let log = logs(client, "ada/logs").await.json().unwrap();
            (log["lines"].as_array().is_some_and(|lines| lines.len() == 2)).then_some(log)
        })
        .await;
        assert_eq!(log, expected);
    }
    let last = logs(&ada, "ada/logs?tail=1&container=notebook").await.json().unwrap();
    assert_eq!(last["lines"], json!(["second run"]));
    for (query, problem) in [
        ("container=other", "404 unknown_container"),
        ("tail=0", "422 invalid_number"),
        ("previous=perhaps", "422 wrong_type"),
    ] {
        assert_eq!(logs(&ada, &format!("ada/logs?{query}")).await.problem().unwrap(), problem, "{query}");
    }
    assert!(!service.log().contains("s3cret"), "a secret is in the log");
    ada.stop_to_end("ada").await.unwrap();
    assert_eq!(logs(&ada, "ada/logs").await.problem().unwrap(), "404 unknown_lab");
}

#[tokio::test]
async fn nobody_else_reads_a_lab_s_log() {
    let service = Service::start(BINARY).await.unwrap();
    service.user("ada").unwrap().spawn_to_end("ada").await.unwrap();
    let (hub, eve) = (service.hub().unwrap(), service.user("eve").unwrap());
    for (client, expected) in [
        (&hub, "403 permission_denied"),
        (&eve, "403 permission_denied"),
        (&service.stranger(), "401 not_authenticated"),
    ] {
        for lab in ["ada", "ada/servers/gpu", "nobody"] {
            let answer = logs(client, &format!("{lab}/logs")).await;
            assert_eq!(answer.problem().unwrap(), expected, "{lab}");
        }
    }
}

/// The pod of another installation has the name and the namespace that the user's lab would have.
#[tokio::test]
async fn the_log_of_a_pod_that_is_not_the_lab_s_own_is_not_read() {
    let single = |config: &mut Value| {
        config["kubernetes"] = json!({ "namespaces": "single" });
        config["names"] = json!({ "namespace": "labs" });
    };
    let service = Service::start_with(BINARY, single).await.unwrap();
    let cluster = service.cluster().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(cluster.clone());
    if namespaces.get_opt("labs").await.unwrap().is_none() {
        let labs = serde_json::from_value(json!({ "metadata": { "name": "labs" } })).unwrap();
        namespaces.create(&PostParams::default(), &labs).await.unwrap();
    }
    let theirs = json!({
        "metadata": { "name": "nb-ada", "labels": {
            "app.kubernetes.io/managed-by": "wasmspawner", "wasmspawner.io/instance": "other",
            "wasmspawner.io/spawn": "11111111-1111-4111-8111-111111111111",
        } },
        "spec": { "containers": [{ "name": "notebook", "image": "lab:1" }] },
    });
    let pods: Api<Pod> = Api::namespaced(cluster, "labs");
    pods.create(&PostParams::default(), &serde_json::from_value(theirs).unwrap()).await.unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    let answer = logs(&ada, "ada/logs").await;
    assert_eq!(answer.problem().unwrap(), "409 no_log", "{answer:?}");
}
