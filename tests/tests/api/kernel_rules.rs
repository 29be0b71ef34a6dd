//! Refusals to users who start kernels.

use futures::future::join_all;
use http::Method;
use serde_json::{Value, json};

use super::kernels::{body, path, pods, records, run, start, start_in_turn, stop, until, with_lab};

#[tokio::test]
async fn an_id_is_used_once_at_a_time_and_limits_hold_under_many_requests() {
    let few = |config: &mut Value| {
        config["limits"] = json!({ "per_user": { "kernels": 3, "kernel_starts_per_minute": 1000, "requests_per_second": 1000, "requests_at_once": 500 } });
    };
    let (service, ada) = with_lab("ada", few).await;
    let twice = join_all((0..2).map(|_| start(&ada, "ada", "same"))).await;
    let mut answers: Vec<u16> = twice.iter().map(|answer| answer.status).collect();
    answers.sort_unstable();
    assert_eq!(answers, [201, 409], "{twice:?}");
    let names: Vec<String> = (0..200).map(|number| format!("k{number}")).collect();
    let many = join_all(names.iter().map(|name| start_in_turn(&ada, "ada", name))).await;
    let with = |status| many.iter().filter(|answer| answer.status == status).count();
    assert_eq!((with(201), with(403)), (2, 198));
    let denied = many.iter().find(|answer| answer.status == 403).unwrap();
    assert!(denied.body.contains("You may have 3 kernels at a time and have 3"), "{denied:?}");
    let cluster = service.cluster().await.unwrap();
    assert_eq!(records(&cluster).await.len(), 4, "a lab and three kernels");
    // Another user's kernels are counted separately.
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

#[tokio::test]
async fn one_user_s_starts_are_limited_also_those_that_fail() {
    let few = |config: &mut Value| {
        config["limits"] = json!({ "per_user": { "kernel_starts_per_minute": 2 } });
    };
    let (service, ada) = with_lab("ada", few).await;
    let answers = join_all(["k1", "k2", "k3"].map(|name| start(&ada, "ada", name))).await;
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 201).collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].problem().unwrap(), "429 too_many_kernels_of_user");
    assert!(!refused[0].header("retry-after").is_empty());
    let grace = service.user("grace").unwrap();
    grace.spawn_to_end("grace").await.unwrap();
    run(&grace, "grace", "k1").await;
}

/// A client that disconnects must not get more than the limit.
#[tokio::test]
async fn a_limit_holds_against_clients_that_do_not_wait() {
    let few = |config: &mut Value| {
        let generous = json!({ "kernels": 2, "kernel_starts_per_minute": 1000, "requests_per_second": 1000, "requests_at_once": 500 });
        config["limits"] = json!({ "per_user": generous });
    };
    let (service, ada) = with_lab("ada", few).await;
    let names: Vec<String> = (0..60).map(|number| format!("k{number}")).collect();
    let impatient = names.iter().map(|name| {
        let request = ada.request(Method::POST, &path("ada", name)).json(&body());
        ada.send(request.timeout(std::time::Duration::from_millis(3)))
    });
    join_all(impatient).await;
    // Two more that wait reach the limit, whatever number of them was accepted.
    start_in_turn(&ada, "ada", "first").await;
    start_in_turn(&ada, "ada", "second").await;
    assert_eq!(start_in_turn(&ada, "ada", "third").await.status, 403);
    assert!(records(&service.cluster().await.unwrap()).await.len() <= 3, "a lab and two kernels");
}

/// A site whose users choose the image, without a default.
#[tokio::test]
async fn a_kernel_has_the_image_of_its_lab_also_where_nobody_has_a_default() {
    let menu = |config: &mut Value| {
        let images = json!([
            { "name": "old", "reference": "quay.io/site/lab:1" },
            { "name": "new", "reference": "quay.io/site/lab:2" },
        ]);
        let sizes = json!([{ "name": "small", "cpu": 1, "memory": "1Gi" }, { "name": "large", "cpu": 2, "memory": "2Gi" }]);
        let path = wasmspawner_tests::guests::component("policy-default");
        let policy =
            json!({ "name": "default", "path": path, "config": { "images": images, "sizes": sizes } });
        config["policies"] = json!([policy]);
        config["lab"]["image"] = Value::Null;
    };
    let service = wasmspawner_tests::service::Service::start_with(crate::BINARY, menu).await.unwrap();
    let ada = service.user("ada").unwrap();
    let chosen = json!({ "options": { "image": "new", "size": "small" } });
    assert_eq!(ada.spawn_with("ada", &chosen).await.unwrap().status, 303);
    ada.events("ada").await.unwrap().to_end().await.unwrap();
    for (options, image, size) in [
        (json!({}), "quay.io/site/lab:2", "small"),
        (json!({ "size": "large" }), "quay.io/site/lab:2", "large"),
        (json!({ "image": "old" }), "quay.io/site/lab:1", "small"),
    ] {
        let mut sent = body();
        sent["options"] = options.clone();
        let answer = ada.send(ada.request(Method::POST, &path("ada", "k")).json(&sent)).await.unwrap();
        assert_eq!(answer.status, 201, "{options}: {answer:?}");
        let kernel = until(&ada, "ada", "k", |kernel| kernel["status"] != "starting").await;
        assert_eq!(
            (&kernel["status"], &kernel["image"]),
            (&json!("running"), &json!(image)),
            "{options}: {kernel:#}"
        );
        assert_eq!(kernel["options"]["size"], size, "{options}");
        stop(&ada, "ada", "k").await;
        until(&ada, "ada", "k", Value::is_null).await;
    }
}

#[tokio::test]
async fn a_lab_whose_container_was_restarted_has_no_kernels_any_more() {
    let service = wasmspawner_tests::service::Service::start(crate::BINARY).await.unwrap();
    let name = "once.oom";
    let user = service.user(name).unwrap();
    user.spawn_to_end(name).await.unwrap();
    let answer = start(&user, name, "k1").await;
    assert!([201, 409].contains(&answer.status), "{answer:?}");
    super::running::until(&user, name, |lab| lab["restarts"] == 1).await;
    until(&user, name, "k1", |kernel| kernel.is_null() || kernel["status"] == "terminating").await;
}
