//! What is refused to those who start kernels.

use futures::future::join_all;
use http::Method;
use serde_json::{Value, json};

use super::kernels::{body, path, pods, records, run, start, with_lab};

#[tokio::test]
async fn an_id_is_used_once_at_a_time_and_limits_hold_under_many_requests() {
    let few = |config: &mut Value| {
        config["limits"] =
            json!({ "per_user": { "kernels": 3, "requests_per_second": 1000, "requests_at_once": 500 } });
    };
    let (service, ada) = with_lab("ada", few).await;
    let twice = join_all((0..2).map(|_| start(&ada, "ada", "same"))).await;
    let mut answers: Vec<u16> = twice.iter().map(|answer| answer.status).collect();
    answers.sort_unstable();
    assert_eq!(answers, [201, 409], "{twice:?}");
    let names: Vec<String> = (0..200).map(|number| format!("k{number}")).collect();
    let many = join_all(names.iter().map(|name| start(&ada, "ada", name))).await;
    let with = |status| many.iter().filter(|answer| answer.status == status).count();
    assert_eq!((with(201), with(403)), (2, 198));
    let denied = many.iter().find(|answer| answer.status == 403).unwrap();
    assert!(denied.body.contains("You may have 3 kernels at a time and have 3"), "{denied:?}");
    let cluster = service.cluster().await.unwrap();
    assert_eq!(records(&cluster).await.len(), 4, "a lab and three kernels");
    // Another user's kernels are counted apart.
    let grace = service.user("grace").unwrap();
    grace.spawn_to_end("grace").await.unwrap();
    run(&grace, "grace", "k1").await;
}

#[tokio::test]
async fn a_policy_that_denies_leaves_no_object() {
    let deny = |config: &mut Value| {
        let policy = json!({
            "name": "no-kernels",
            "path": wasmspawner_tests::guests::component("policy-deny-group"),
            "config": { "deny": ["students"], "message": "Students start no kernels.", "actions": ["start-kernel"] },
        });
        config["policies"].as_array_mut().unwrap().push(policy);
        config["auth"]["identities"] =
            json!({ "users": { "ada": { "uid": 1000, "gid": 1000, "groups": [{ "name": "students" }] } } });
    };
    let (service, ada) = with_lab("ada", deny).await;
    let answer = start(&ada, "ada", "k1").await;
    assert_eq!(answer.problem().unwrap(), "403 permission_denied");
    assert!(answer.body.contains("Students start no kernels."), "{answer:?}");
    let cluster = service.cluster().await.unwrap();
    assert_eq!((records(&cluster).await.len(), pods(&cluster, "nublado-ada").await.len()), (1, 1));
}

#[tokio::test]
async fn every_mistake_in_a_body_is_told() {
    let (_service, ada) = with_lab("ada", |_| {}).await;
    let send = async |sent: Value| {
        ada.send(ada.request(Method::POST, &path("ada", "k1")).json(&sent)).await.unwrap()
    };
    let answer = send(json!({ "command": "python", "image": "x" })).await;
    assert_eq!(answer.status, 422);
    for part in ["kernel_name", "command", "connection", "image"] {
        assert!(answer.body.contains(part), "{part}: {answer:?}");
    }
    let unknown = json!({ "options": { "no-such": 1 } });
    let mut wrong = body();
    wrong["options"] = unknown["options"].clone();
    let answer = send(wrong).await;
    assert!(answer.status == 422 || answer.status == 201, "{answer:?}");
    let request = ada.request(Method::POST, &path("ada", "k1")).body("{");
    assert_eq!(ada.send(request).await.unwrap().status, 415);
}
