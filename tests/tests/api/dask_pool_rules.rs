//! Refusals to users who start Dask pools.

use futures::future::join_all;
use http::Method;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Client, PREFIX};

use super::dask_pools::{
    body, connect, end, keeper, path, report, run, scale, start, stop, until, until_running, until_workers,
};
use super::kernels::{self, with_lab};

#[tokio::test]
async fn all_pools_of_a_user_share_the_users_workers() {
    let few = |config: &mut Value| {
        config["limits"] = json!({ "per_user": { "dask_workers": 5, "dask_pools": 3, "kernel_starts_per_minute": 1000, "requests_per_second": 1000, "requests_at_once": 500 } });
    };
    let (service, ada) = with_lab("ada", few).await;
    run(&ada, "ada", "a", json!(3)).await;
    let refused = start(&ada, "ada", "b", &body(json!(3))).await;
    assert_eq!(refused.problem().unwrap(), "403 permission_denied");
    assert!(refused.body.contains("You may have 5 Dask workers at a time and have 3"), "{refused:?}");
    run(&ada, "ada", "b", json!({ "minimum": 1, "maximum": 50 })).await;
    let clamped = scale(&ada, "ada", "a", json!(50)).await;
    assert_eq!(clamped.status, 202);
    let clamped = clamped.json().unwrap();
    assert_eq!(clamped["workers"]["desired"], 4, "{clamped:#}");
    assert!(clamped["note"].as_str().unwrap().contains("You may have 5 Dask workers"), "{clamped:#}");
    let names: Vec<String> = (0..200).map(|number| format!("p{number}")).collect();
    let empty = body(json!(0));
    let many = join_all(names.iter().map(|name| start(&ada, "ada", name, &empty))).await;
    assert_eq!(many.iter().filter(|answer| answer.status == 201).count(), 1, "three pools in all");
    scale(&ada, "ada", "a", json!(4)).await;
    join_all((0..200).map(|round| scale(&ada, "ada", "b", json!(round)))).await;
    assert_eq!(scale(&ada, "ada", "b", json!(50)).await.json().unwrap()["workers"]["desired"], 1);
    let cluster = service.cluster().await.unwrap();
    until_workers(&cluster, "nublado-ada", 5).await;
    // Workers that one pool gives back go to the other.
    stop(&ada, "ada", "a").await;
    until(&ada, "ada", "b", |pool| pool["workers"]["desired"] == 5).await;
}

#[tokio::test]
async fn only_the_owner_has_the_pool_and_its_scheduler_has_only_that() {
    let (service, ada) = with_lab("ada", |_| {}).await;
    run(&ada, "ada", "p", json!(0)).await;
    let (eve, nobody) = (service.user("eve").unwrap(), service.stranger());
    for (method, at, sent) in [
        (Method::POST, path("ada", "q"), body(json!(1))),
        (Method::POST, format!("{}/scale", path("ada", "p")), json!({ "workers": 1 })),
        (Method::GET, path("ada", "p"), json!({})),
        (Method::DELETE, path("ada", "p"), json!({})),
        (Method::GET, format!("{}/events", path("ada", "p")), json!({})),
        (Method::GET, format!("{PREFIX}/labs/ada/dask-pools"), json!({})),
    ] {
        let by = async |client: &Client| {
            client.send(client.request(method.clone(), &at).json(&sent)).await.unwrap()
        };
        assert_eq!(by(&eve).await.problem().unwrap(), "403 permission_denied", "{method} {at}");
        assert_eq!(by(&nobody).await.status, 401, "{method} {at}");
    }
    let keeper = keeper(&service, "nublado-ada").await;
    assert_eq!(report(&keeper, "ada", "p", 0, 0).await.status, 204);
    for refused in [
        report(&keeper, "ada", "q", 0, 0).await,
        report(&ada, "ada", "p", 0, 0).await,
        stop(&keeper, "ada", "p").await,
        scale(&keeper, "ada", "p", json!(1)).await,
    ] {
        assert_eq!(refused.status, 401, "{refused:?}");
    }
    assert_eq!(report(&keeper, "ada", "p", 0, 10_001).await.problem().unwrap(), "422 invalid_body");
    let kernel = format!("{PREFIX}/labs/ada/kernels/p/launcher");
    let process = json!({ "number": 1, "state": "running" });
    let answer = keeper.send(keeper.request(Method::PUT, &kernel).json(&process)).await.unwrap();
    assert_eq!(answer.status, 401, "a pool is no kernel");
}

#[tokio::test]
async fn a_site_can_mandate_adaptive_pools_that_end() {
    let rules = |config: &mut Value| {
        config["dask"] = json!({ "require_adaptive": true, "longest_idle_timeout": "30m" });
    };
    let (_service, ada) = with_lab("ada", rules).await;
    let pool = run(&ada, "ada", "p", json!(4)).await;
    assert_eq!((&pool["workers"]["minimum"], &pool["workers"]["maximum"]), (&json!(0), &json!(4)));
    assert_eq!((&pool["adaptive"], &pool["idle_timeout"]), (&json!(true), &json!(1800)));
    let scaled = scale(&ada, "ada", "p", json!(2)).await.json().unwrap();
    assert_eq!((&scaled["workers"]["minimum"], &scaled["workers"]["maximum"]), (&json!(0), &json!(2)));
    let mut lasting = body(json!(1));
    lasting["outlive_lab"] = true.into();
    let answer = start(&ada, "ada", "q", &lasting).await;
    assert_eq!(answer.problem().unwrap(), "422 invalid_pool", "its namespace goes with the lab");
}

#[tokio::test]
async fn a_policy_decides_how_much_the_labs_of_a_user_start() {
    let few = |config: &mut Value| {
        let quota = json!({
            "default": { "kernels": 1, "dask_workers": 4 },
            "groups": { "science": { "dask_workers": 8 } },
        });
        let policy = json!({
            "name": "default",
            "path": wasmspawner_tests::guests::component("policy-default"),
            "config": { "quota": quota },
        });
        config["policies"].as_array_mut().unwrap().insert(0, policy);
        config["auth"]["identities"]["users"] =
            json!({ "ada": { "uid": 1000, "gid": 1000, "groups": [{ "name": "science" }] } });
    };
    let (service, ada) = with_lab("ada", few).await;
    let many = start(&ada, "ada", "p", &body(json!({ "minimum": 0, "maximum": 9 }))).await;
    assert_eq!(many.problem().unwrap(), "403 permission_denied");
    assert!(many.body.contains("This pool may have 8 at the most, not 9."), "{many:?}");
    run(&ada, "ada", "p", json!({ "minimum": 0, "maximum": 6 })).await;
    assert_eq!(start(&ada, "ada", "q", &body(json!(3))).await.status, 403, "others count with their maximum");
    assert_eq!(scale(&ada, "ada", "p", json!(9)).await.problem().unwrap(), "403 permission_denied");
    assert_eq!(scale(&ada, "ada", "p", json!(8)).await.status, 202, "the pool itself does not count");
    kernels::run(&ada, "ada", "k1").await;
    let second = kernels::start(&ada, "ada", "k2").await;
    assert!(second.body.contains("You may have 1 kernels at a time and have 1."), "{second:?}");
    let eve = service.user("eve").unwrap();
    eve.spawn_to_end("eve").await.unwrap();
    assert_eq!(start(&eve, "eve", "p", &body(json!(5))).await.status, 403);
    run(&eve, "eve", "p", json!(4)).await;
}

#[tokio::test]
async fn workers_that_are_still_there_count_for_their_user() {
    let few = |config: &mut Value| config["limits"] = json!({ "per_user": { "dask_workers": 4 } });
    let (service, ada) = with_lab("ada", few).await;
    run(&ada, "ada", "a", json!(3)).await;
    let cluster = service.cluster().await.unwrap();
    let of_first = until_running(&cluster, "nublado-ada", 3).await;
    run(&ada, "ada", "b", json!({ "minimum": 0, "maximum": 4 })).await;
    let wanted = async |pool, workers| {
        scale(&ada, "ada", pool, json!(workers)).await.json().unwrap()["workers"]["desired"].clone()
    };
    assert_eq!(wanted("b", 4).await, 1);
    until_running(&cluster, "nublado-ada", 4).await;
    // Nobody retires the workers of the first pool, so they stay, and count.
    assert_eq!(wanted("a", 0).await, 0);
    assert_eq!(wanted("b", 4).await, 1);
    let refused = start(&ada, "ada", "c", &body(json!(1))).await;
    assert!(refused.body.contains("You may have 4 Dask workers at a time and have 4"), "{refused:?}");
    for worker in &of_first {
        end(&cluster, worker, "Succeeded").await;
    }
    until(&ada, "ada", "b", |pool| pool["workers"]["desired"] == 4).await;
}

#[tokio::test]
async fn a_pool_holds_one_connection() {
    let (service, ada) = with_lab("ada", |_| {}).await;
    run(&ada, "ada", "p", json!(0)).await;
    let keeper = keeper(&service, "nublado-ada").await;
    let mut first = connect(&keeper, "ada", "p").await;
    first.until("\"target\":0").await.unwrap();
    let mut second = connect(&keeper, "ada", "p").await;
    first.to_end().await.unwrap();
    scale(&ada, "ada", "p", json!(1)).await;
    second.until("\"target\":1").await.unwrap();
}

#[tokio::test]
async fn a_client_that_is_late_does_not_stop_a_later_pool_of_the_same_name() {
    let (_service, ada) = with_lab("ada", |_| {}).await;
    let digest = run(&ada, "ada", "p", json!(0)).await["certificate_digest"].as_str().unwrap().to_owned();
    let stop_if = async |tag: String| {
        ada.send(ada.request(Method::DELETE, &path("ada", "p")).header("If-Match", tag)).await.unwrap()
    };
    assert_eq!(stop_if("\"sha256:of-another\"".to_owned()).await.problem().unwrap(), "412 another_pool");
    assert_eq!(stop_if(format!("\"{digest}\"")).await.status, 202);
    until(&ada, "ada", "p", Value::is_null).await;
    assert_eq!(stop_if(format!("\"{digest}\"")).await.problem().unwrap(), "404 unknown_pool");
}
