//! The view of environments for administrators, and their actions, by the API and from the command line.

use http::Method;
use serde_json::json;
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use super::environments::{add_class, until_no_namespace, with_environments};
use crate::BINARY;

/// Runs `wasmspawner environments ...`. Returns true if it succeeds, and its output.
fn command(service: &Service, args: &[&str]) -> (bool, String) {
    let mut command = std::process::Command::new(BINARY);
    command
        .arg("environments")
        .args(args)
        .env("WASMSPAWNER_URL", format!("http://{}{PREFIX}", service.api()));
    // The token of `Service::admin`.
    let output =
        command.env("WASMSPAWNER_TOKEN", "admin-AdminNotebook").env_remove("RUST_LOG").output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_see_free_and_remove_targets() {
    let (service, client) = with_environments(|_| {}).await;
    add_class(&client, "standard", json!({"reclaimPolicy": "Retain"})).await;
    let (ada, admin) = (service.user("ada").unwrap(), service.admin().unwrap());
    ada.spawn_to_end("ada").await.unwrap();
    let path = |rest: &str| format!("{PREFIX}/environments{rest}");
    assert_eq!(ada.get(&path("")).await.unwrap().status, 403, "users see no environments of others");
    let all = admin.get(&path("")).await.unwrap().json().unwrap();
    let target = all["targets"][0].clone();
    assert_eq!((&target["phase"], &target["owner"]), (&json!("Bound"), &json!("ada")));
    assert_eq!(all["claims"][0]["target"], target["name"]);
    let name = target["name"].as_str().unwrap().to_owned();

    let (worked, text) = command(&service, &["list"]);
    assert!(worked && text.contains("nublado-ada") && text.contains("TARGET"), "{text}");
    let (worked, text) = command(&service, &["show", &name]);
    assert!(
        worked && text.contains("namespace:    nublado-ada") && text.contains("phase:        Bound"),
        "{text}"
    );
    let (worked, text) = command(&service, &["show", "nothing"]);
    assert!(!worked && text.contains("there is no environment, claim or target \"nothing\""), "{text}");
    let (worked, text) = command(&service, &["release", &name]);
    assert!(!worked && text.contains("was not released"), "{text}");
    let (worked, text) = command(&service, &["retire", &name]);
    assert!(!worked && text.contains("stop the lab, or delete the claim, first"), "{text}");
    let refused = admin.send(admin.request(Method::DELETE, &path("/targets/No!"))).await.unwrap();
    assert_eq!(refused.status, 422, "{refused:?}");
    let unknown = admin.send(admin.request(Method::DELETE, &path("/targets/nothing"))).await.unwrap();
    assert_eq!((unknown.status, unknown.problem().unwrap().as_str()), (404, "404 unknown_target"));

    ada.stop_to_end("ada").await.unwrap();
    let phase = async || {
        let all = admin.get(&path("")).await.unwrap().json().unwrap();
        all["targets"][0]["phase"].as_str().unwrap_or_default().to_owned()
    };
    until_some(async || (phase().await == "Released").then_some(())).await;
    let metrics = service.probes().get("/metrics").await.unwrap().body;
    assert!(metrics.contains("wasmspawner_environment_targets{phase=\"Released\"} 1"), "{metrics}");
    let (worked, text) = command(&service, &["release", &name]);
    assert!(worked, "{text}");
    until_some(async || (phase().await == "Available").then_some(())).await;
    let (worked, text) = command(&service, &["retire", &name]);
    assert!(worked && text.contains("is being removed"), "{text}");
    until_no_namespace(&client).await;
    until_some(async || {
        let (worked, text) = command(&service, &["list"]);
        (worked && text.is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_site_without_environments_says_so() {
    let service = Service::start(BINARY).await.unwrap();
    let admin = service.admin().unwrap();
    let answer = admin.get(&format!("{PREFIX}/environments")).await.unwrap();
    assert_eq!((answer.status, answer.problem().unwrap().as_str()), (404, "404 no_environments"));
}
