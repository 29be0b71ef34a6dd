//! User strings: the user and the wanted lab in one text.

use http::Method;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::service::Service;

use super::kernels;
use super::running::until;
use crate::BINARY;

async fn service() -> Service {
    Service::start_with(BINARY, |config| {
        config["blueprints"] = json!({ "site": { "gpu": { "env": { "FROM": "gpu" } } } });
    })
    .await
    .unwrap()
}

async fn spawn(client: &Client, path: &str, user_string: &str) -> Answer {
    let request = client.request(Method::POST, &format!("{PREFIX}{path}/spawn"));
    client.send(request.json(&json!({ "user_string": user_string }))).await.unwrap()
}

async fn find(client: &Client, user_string: &str) -> Answer {
    let request = client.request(Method::GET, &format!("{PREFIX}/lab-lookup"));
    client.send(request.query(&[("user_string", user_string)])).await.unwrap()
}

#[tokio::test]
async fn the_same_wish_is_the_same_lab_and_a_second_request_is_told_where_it_is() {
    let service = service().await;
    let ada = service.user("ada").unwrap();
    assert_eq!(find(&ada, "ada~blueprint=gpu").await.problem().unwrap(), "404 unknown_lab");
    let started = spawn(&ada, "/labs/ada", "ada~blueprint=gpu").await;
    let place = format!("{PREFIX}/labs/ada/servers/gpu");
    assert_eq!((started.status, started.header("location")), (303, place.as_str()), "{started:?}");
    for (path, again) in
        [("/labs/ada", "ada~blueprint=gpu"), ("/labs/ada", "ada/gpu"), ("/labs/ada/servers/gpu", "ada/gpu")]
    {
        let refused = spawn(&ada, path, again).await;
        assert_eq!((refused.status, refused.header("location")), (409, place.as_str()), "{refused:?}");
    }
    let found = find(&ada, "ada/gpu").await.json().unwrap();
    assert!(found["status"] == "starting" || found["status"] == "running", "{found}");
    let expected = json!({
        "user_string": "ada/gpu", "username": "ada", "server": "gpu", "kernel": null, "dask_pool": null, "path": place,
        "status": found["status"],
    });
    assert_eq!(found, expected);
    // This lab is another one than that of the default server.
    let other = spawn(&ada, "/labs/ada", "ada").await;
    assert_eq!(other.header("location"), format!("{PREFIX}/labs/ada"));
    let lab = until(&ada, "ada/servers/gpu", |lab| lab["status"] == "running").await;
    assert_eq!((&lab["env"]["FROM"], &lab["options"]["blueprint"]), (&json!("gpu"), &json!("gpu")));
    let plain = until(&ada, "ada", |lab| lab["status"] == "running").await;
    assert_eq!(plain["env"].get("FROM"), None);
}

#[tokio::test]
async fn a_kernel_is_found_and_stopped_by_its_user_string() {
    let (service, ada) = kernels::with_lab("ada", |_| {}).await;
    let eve = service.user("eve").unwrap();
    assert_eq!(find(&ada, "ada~kernel=k1").await.problem().unwrap(), "404 unknown_kernel");
    assert_eq!(find(&ada, "ada~dask-pool=tides").await.problem().unwrap(), "404 unknown_pool");
    kernels::run(&ada, "ada", "k1").await;
    let found = find(&ada, "ada~kernel=k1").await.json().unwrap();
    let place = kernels::path("ada", "k1");
    let expected = json!({
        "user_string": "ada~kernel=k1", "username": "ada", "server": "", "kernel": "k1", "dask_pool": null, "path": place,
        "status": "running",
    });
    assert_eq!(found, expected);
    for (client, asked, problem) in [
        (&ada, "ada/gpu~kernel=k1", "404 unknown_kernel"),
        (&ada, "ada~dask-pool=k1", "404 unknown_pool"),
        (&ada, "ada~kernel=-k", "422 invalid_user_string"),
        (&eve, "ada~kernel=k1", "403 permission_denied"),
    ] {
        assert_eq!(find(client, asked).await.problem().unwrap(), problem, "{asked}");
    }
    let refused = spawn(&ada, "/labs/ada", "ada~kernel=k1").await;
    assert_eq!(refused.problem().unwrap(), "422 invalid_user_string", "a kernel is not started as a lab");
    assert_eq!(ada.send(ada.request(Method::DELETE, &place)).await.unwrap().status, 202);
    kernels::until(&ada, "ada", "k1", Value::is_null).await;
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
}

#[tokio::test]
async fn a_wish_that_cannot_be_fulfilled_is_told_with_the_reason() {
    let service = service().await;
    let (ada, eve) = (service.user("ada").unwrap(), service.user("eve").unwrap());
    for (path, user_string, problem) in [
        ("/labs/ada", "ada~colour=red", "422 invalid_user_string"),
        ("/labs/ada", "", "422 invalid_user_string"),
        ("/labs/ada", "eve", "422 another_lab"),
        ("/labs/ada/servers/mine", "ada/gpu", "422 another_lab"),
        ("/labs/ada/servers/mine", "ada", "422 another_lab"),
        ("/labs/ada", "ada~blueprint=tpu", "422 invalid_option"),
        ("/labs/ada", "ada~repo=org/project", "422 not_offered"),
        ("/labs/ada", "ada~workload=deployment/shop/web", "422 not_offered"),
        ("/labs/eve", "eve", "403 permission_denied"),
    ] {
        let refused = spawn(&ada, path, user_string).await;
        assert_eq!(refused.problem().unwrap(), problem, "{path} {user_string}: {refused:?}");
    }
    let refused = spawn(&ada, "/labs/ada", "ada~workload=pod/shop/web").await.json().unwrap();
    assert_eq!(
        refused["detail"][0]["msg"],
        "character 14 of the user string: `pod` is no kind of workload; there are `deployment`, `statefulset` and `daemonset`"
    );
    let request =
        ada.request(Method::POST, &format!("{PREFIX}/labs/ada/spawn")).json(&json!({ "user_string": 1 }));
    assert_eq!(ada.send(request).await.unwrap().problem().unwrap(), "422 invalid_user_string");

    for (client, text, problem) in [
        (&eve, "ada/gpu", "403 permission_denied"),
        (&ada, "ada~", "422 invalid_user_string"),
        (&ada, "ada~repo=org/project", "404 unknown_lab"),
    ] {
        assert_eq!(find(client, text).await.problem().unwrap(), problem, "{text}");
    }
    let without = ada.get(&format!("{PREFIX}/lab-lookup?more=1")).await.unwrap();
    assert_eq!(without.problem().unwrap(), "422 invalid_user_string");
    assert_eq!(
        service.hub().unwrap().get(&format!("{PREFIX}/labs?status=all")).await.unwrap().json().unwrap(),
        Value::from(Vec::<Value>::new())
    );
}
