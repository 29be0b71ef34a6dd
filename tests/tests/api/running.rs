//! A running lab whose containers are restarted.

use serde_json::{Value, json};
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

/// Waits until `wanted` is true for the lab.
pub(crate) async fn until(client: &Client, lab: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    until_some(async || {
        let answer = client.lab(lab).await.unwrap();
        let now = if answer.status == 404 { Value::Null } else { answer.json().unwrap() };
        wanted(&now).then_some(now)
    })
    .await
}

#[tokio::test]
async fn an_oom_kill_is_reported_as_a_restart() {
    let service = Service::start(BINARY).await.unwrap();
    let name = "once.oom";
    let user = service.user(name).unwrap();
    let events = user.spawn_to_end(name).await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let lab = until(&user, name, |lab| lab["restarts"] == 1).await;
    assert_eq!(lab["status"], "running", "{lab:#}");
    assert!(lab["message"].as_str().unwrap().contains("memory"), "{lab:#}");

    let events = user.events(name).await.unwrap().to_end().await.unwrap();
    let reported = events.iter().find(|event| event.kind == "error").unwrap();
    assert!(reported.data.contains("more memory than it was given"), "{reported:?}");
    let history = user.get(&format!("{PREFIX}/labs/{name}/history")).await.unwrap().json().unwrap();
    assert_eq!((history.as_array().unwrap().len(), &history[0]["outcome"]), (1, &json!("complete")));
    assert!(history[0]["events"].to_string().contains("more memory"), "{history:#}");
    let metrics = service.probes().get("/metrics").await.unwrap().body;
    assert!(metrics.contains("wasmspawner_lab_restarts_total 1"), "{metrics}");
    until(&user, name, |lab| lab["stage"] == "Running").await;
}

#[tokio::test]
async fn a_lab_that_crashes_too_often_fails_with_the_reason() {
    let strict = |config: &mut Value| config["limits"] = json!({ "running_restarts": 0 });
    let service = Service::start_with(BINARY, strict).await.unwrap();
    let name = "later.oom";
    let user = service.user(name).unwrap();
    let spawned = user.spawn_to_end(name).await.unwrap();
    assert_eq!(spawned.last().unwrap().kind, "complete", "{spawned:#?}");
    let ended = user.next_operation(name, &spawned).await.unwrap();
    assert_eq!(ended.last().unwrap().kind, "failed", "{ended:#?}");
    let lab = user.lab(name).await.unwrap().json().unwrap();
    assert_eq!((&lab["status"], &lab["reason"]), (&json!("failed"), &json!("CrashLoopBackOff")), "{lab:#}");
    assert!(lab["message"].as_str().unwrap().contains("more memory"), "{lab:#}");
    assert_eq!(lab["exit_code"], 137, "{lab:#}");
    assert_eq!(user.stop(name).await.unwrap().status, 202, "a failure can be dismissed");
    until(&user, name, Value::is_null).await;
}
