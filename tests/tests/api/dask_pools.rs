//! Dask pools: a scheduler and workers below a lab, as many as the scheduler needs and its user may have.

use futures::future::join_all;
use http::Method;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Client as Cluster;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::events::Events;
use wasmspawner_tests::service::Service;

use super::kernels::{pods, records, with_lab};
use super::running::until_some;
use crate::BINARY;

/// The secret of a pool, which nobody but its pods and its client may see.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nnobody-sees-this\n-----END PRIVATE KEY-----\n";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nanybody\n-----END CERTIFICATE-----\n";

fn body(workers: Value) -> Value {
    json!({ "workers": workers, "tls": { "certificate": CERTIFICATE, "key": KEY } })
}

fn path(lab: &str, pool: &str) -> String {
    format!("{PREFIX}/labs/{lab}/dask-pool/{pool}")
}

async fn post(client: &Client, at: &str, sent: &Value) -> Answer {
    client.send(client.request(Method::POST, at).json(sent)).await.unwrap()
}

async fn start(client: &Client, lab: &str, pool: &str, sent: &Value) -> Answer {
    post(client, &format!("{}/spawn", path(lab, pool)), sent).await
}

async fn stop(client: &Client, lab: &str, pool: &str) -> Answer {
    client.send(client.request(Method::DELETE, &path(lab, pool))).await.unwrap()
}

async fn scale(client: &Client, lab: &str, pool: &str, workers: Value) -> Answer {
    post(client, &format!("{}/scale", path(lab, pool)), &json!({ "workers": workers })).await
}

/// The pool as soon as `wanted` is true of it; `Null` if there is none.
async fn until(client: &Client, lab: &str, pool: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    until_some(async || {
        let answer = client.get(&path(lab, pool)).await.unwrap();
        let now = if answer.status == 404 { Value::Null } else { answer.json().unwrap() };
        wanted(&now).then_some(now)
    })
    .await
}

fn is_running(pool: &Value) -> bool {
    pool["status"] == "running"
}

async fn run(client: &Client, lab: &str, pool: &str, workers: Value) -> Value {
    let answer = start(client, lab, pool, &body(workers)).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    until(client, lab, pool, is_running).await
}

fn component(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get("app.kubernetes.io/component").map(String::as_str)
}

async fn of_component(cluster: &Cluster, namespace: &str, name: &str) -> Vec<Pod> {
    pods(cluster, namespace).await.into_iter().filter(|pod| component(pod) == Some(name)).collect()
}

async fn workers(cluster: &Cluster, namespace: &str) -> Vec<Pod> {
    of_component(cluster, namespace, "dask-worker").await
}

/// Waits for so many workers that are not being deleted.
async fn until_workers(cluster: &Cluster, namespace: &str, count: usize) -> Vec<Pod> {
    until_some(async || {
        let mut now = workers(cluster, namespace).await;
        now.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        (now.len() == count).then_some(now)
    })
    .await
}

/// The program within a pool's scheduler, which has a token of its own. There is one pool in the namespace.
async fn keeper(service: &Service, namespace: &str) -> Client {
    let cluster = service.cluster().await.unwrap();
    let scheduler = of_component(&cluster, namespace, "dask-scheduler").await.pop().unwrap();
    let secrets: Api<Secret> = Api::namespaced(cluster, namespace);
    let secret = secrets.get(scheduler.metadata.name.as_ref().unwrap()).await.unwrap();
    let token = String::from_utf8(secret.data.unwrap()["dask.token"].0.clone()).unwrap();
    service.stranger().with_token(&token)
}

async fn report(keeper: &Client, lab: &str, pool: &str, ready: u32, wanted: u32) -> Answer {
    let request = keeper.request(Method::PUT, &format!("{}/scheduler", path(lab, pool)));
    keeper.send(request.json(&json!({ "ready": ready, "wanted": wanted }))).await.unwrap()
}

async fn connect(keeper: &Client, lab: &str, pool: &str) -> Events {
    let request = keeper.request(Method::GET, &format!("{}/scheduler", path(lab, pool)));
    Events::of(request.send().await.unwrap().error_for_status().unwrap())
}

/// Ends a worker as its own process would: with this phase.
async fn end(cluster: &Cluster, worker: &Pod, phase: &str) {
    let api: Api<Pod> = Api::namespaced(cluster.clone(), worker.metadata.namespace.as_ref().unwrap());
    let status = json!({ "status": { "phase": phase } });
    let name = worker.metadata.name.as_ref().unwrap();
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

#[tokio::test]
async fn a_pool_has_a_scheduler_and_the_workers_that_were_asked_for() {
    let (service, ada) = with_lab("ada", |_| {}).await;
    let pool = run(&ada, "ada", "survey", json!(3)).await;
    assert_eq!((&pool["name"], &pool["adaptive"]), (&json!("survey"), &json!(false)));
    assert_eq!(pool["scheduler_address"], Value::Null, "the scheduler has not reported");
    let cluster = service.cluster().await.unwrap();
    let made = until_workers(&cluster, "nublado-ada", 3).await;
    let all = pods(&cluster, "nublado-ada").await;
    let lab = all.iter().find(|pod| pod.metadata.name.as_deref() == Some("nb-ada")).unwrap();
    let scheduler = all.iter().find(|pod| component(pod) == Some("dask-scheduler")).unwrap();
    let uid = |pod: &Pod| pod.metadata.uid.clone().unwrap();
    let owner = |pod: &Pod| pod.metadata.owner_references.as_ref().unwrap()[0].uid.clone();
    assert_eq!(owner(scheduler), uid(lab), "the cluster deletes it with the lab");
    for worker in &made {
        assert_eq!(owner(worker), uid(scheduler), "the cluster deletes it with the scheduler");
        let (spec, of_lab) = (worker.spec.as_ref().unwrap(), lab.spec.as_ref().unwrap());
        assert_eq!(spec.containers[0].image, of_lab.containers[0].image);
        assert_eq!(spec.containers[0].security_context, of_lab.containers[0].security_context);
        assert_eq!(spec.security_context, of_lab.security_context);
        assert_eq!(spec.automount_service_account_token, Some(false));
        let files = serde_json::to_string(&spec.volumes).unwrap();
        assert!(files.contains("dask.tls.key") && !files.contains("dask.token"), "{files}");
    }
    let answer = report(&keeper(&service, "nublado-ada").await, "ada", "survey", 2, 3).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    let pool = until(&ada, "ada", "survey", |pool| pool["workers"]["ready"] == 2).await;
    let address = pool["scheduler_address"].as_str().unwrap();
    assert!(address.starts_with("tls://") && address.ends_with(":8786"), "{address}");
    let listed = ada.get(&format!("{PREFIX}/labs/ada/dask-pool")).await.unwrap().json().unwrap();
    assert_eq!(listed, json!(["survey"]));

    assert_eq!(stop(&ada, "ada", "survey").await.status, 202);
    until(&ada, "ada", "survey", Value::is_null).await;
    until_some(async || (records(&cluster).await.len() == 1).then_some(())).await;
    let left: Vec<_> = pods(&cluster, "nublado-ada").await.into_iter().map(|pod| pod.metadata.name).collect();
    assert_eq!(left, [Some("nb-ada".to_owned())]);
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
    assert_eq!(stop(&ada, "ada", "survey").await.problem().unwrap(), "404 unknown_pool");
}

#[tokio::test]
async fn the_scheduler_decides_how_many_workers_an_adaptive_pool_has_and_which_of_them_go() {
    let (service, ada) = with_lab("ada", |_| {}).await;
    run(&ada, "ada", "p", json!({ "minimum": 1, "maximum": 4 })).await;
    let cluster = service.cluster().await.unwrap();
    until_workers(&cluster, "nublado-ada", 1).await;
    let keeper = keeper(&service, "nublado-ada").await;
    let mut orders = connect(&keeper, "ada", "p").await;
    orders.until("event: workers\ndata: {\"maximum\":4,\"minimum\":1,\"target\":1}\n\n").await.unwrap();
    report(&keeper, "ada", "p", 1, 9).await;
    orders.until("\"target\":4").await.unwrap();
    let four = until_workers(&cluster, "nublado-ada", 4).await;
    until_some(async || {
        let now = workers(&cluster, "nublado-ada").await;
        let running = |pod: &Pod| pod.status.as_ref().unwrap().phase.as_deref() == Some("Running");
        now.iter().all(running).then_some(())
    })
    .await;
    // The scheduler wants fewer. No worker is deleted until it has ended by itself.
    report(&keeper, "ada", "p", 4, 2).await;
    orders.until("\"target\":2").await.unwrap();
    until(&ada, "ada", "p", |pool| pool["workers"]["desired"] == 2).await;
    assert_eq!(until_workers(&cluster, "nublado-ada", 4).await.len(), 4);
    for retired in &four[..2] {
        end(&cluster, retired, "Succeeded").await;
    }
    let left = until_workers(&cluster, "nublado-ada", 2).await;
    assert!(left.iter().all(|pod| four[2..].iter().any(|kept| kept.metadata.uid == pod.metadata.uid)));
    // One that somebody deletes is replaced.
    let api: Api<Pod> = Api::namespaced(cluster.clone(), "nublado-ada");
    api.delete(left[0].metadata.name.as_ref().unwrap(), &DeleteParams::default()).await.unwrap();
    until_some(async || {
        let now = workers(&cluster, "nublado-ada").await;
        let fresh = now.iter().any(|pod| four.iter().all(|old| old.metadata.uid != pod.metadata.uid));
        (fresh && now.len() == 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_changed_size_survives_a_restart_of_the_service() {
    let keeps = |config: &mut Value| config["embedded"]["keep_labs"] = true.into();
    let (mut service, ada) = with_lab("ada", keeps).await;
    run(&ada, "ada", "p", json!(1)).await;
    let scaled = scale(&ada, "ada", "p", json!(2)).await;
    assert_eq!(scaled.status, 202, "{scaled:?}");
    assert_eq!(scaled.json().unwrap()["workers"]["desired"], 2);
    let cluster = service.cluster().await.unwrap();
    let before = until_workers(&cluster, "nublado-ada", 2).await;
    service.crash_and_restart().await.unwrap();
    let ada = service.user("ada").unwrap();
    let pool = until(&ada, "ada", "p", is_running).await;
    assert_eq!(pool["workers"]["desired"], 2);
    assert_eq!(scale(&ada, "ada", "p", json!(3)).await.status, 202);
    let cluster = service.cluster().await.unwrap();
    let after = until_workers(&cluster, "nublado-ada", 3).await;
    for pod in before {
        assert!(after.iter().any(|now| now.metadata.uid == pod.metadata.uid), "no worker was lost");
    }
    assert_eq!(report(&keeper(&service, "nublado-ada").await, "ada", "p", 3, 3).await.status, 204);
}

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
    assert_eq!(many.iter().filter(|answer| answer.status == 303).count(), 1, "three pools in all");
    scale(&ada, "ada", "a", json!(4)).await;
    join_all((0..200).map(|round| scale(&ada, "ada", "b", json!(round)))).await;
    assert_eq!(scale(&ada, "ada", "b", json!(50)).await.json().unwrap()["workers"]["desired"], 1);
    let cluster = service.cluster().await.unwrap();
    until_workers(&cluster, "nublado-ada", 5).await;
    // What one gives back, the other gets.
    stop(&ada, "ada", "a").await;
    until(&ada, "ada", "b", |pool| pool["workers"]["desired"] == 5).await;
}

#[tokio::test]
async fn only_the_owner_has_the_pool_and_its_scheduler_has_only_that() {
    let (service, ada) = with_lab("ada", |_| {}).await;
    run(&ada, "ada", "p", json!(0)).await;
    let (eve, nobody) = (service.user("eve").unwrap(), service.stranger());
    for (method, at, sent) in [
        (Method::POST, format!("{}/spawn", path("ada", "q")), body(json!(1))),
        (Method::POST, format!("{}/scale", path("ada", "p")), json!({ "workers": 1 })),
        (Method::GET, path("ada", "p"), json!({})),
        (Method::DELETE, path("ada", "p"), json!({})),
        (Method::GET, format!("{}/events", path("ada", "p")), json!({})),
        (Method::GET, format!("{PREFIX}/labs/ada/dask-pool"), json!({})),
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
async fn nothing_secret_of_a_pool_is_in_records_answers_or_logs() {
    let (service, ada) = with_lab("ada", |_| {}).await;
    let pool = run(&ada, "ada", "p", json!(1)).await.to_string();
    let cluster = service.cluster().await.unwrap();
    until_workers(&cluster, "nublado-ada", 1).await;
    let secrets: Api<Secret> = Api::namespaced(cluster.clone(), "nublado-ada");
    let secrets = secrets.list(&ListParams::default()).await.unwrap().items;
    let data =
        secrets.into_iter().filter_map(|secret| secret.data).find(|data| data.contains_key("dask.token"));
    let data = data.unwrap();
    assert_eq!(data["dask.tls.key"].0, KEY.as_bytes());
    let token = String::from_utf8(data["dask.token"].0.clone()).unwrap();
    for (place, text) in [
        ("answer", pool),
        ("records", serde_json::to_string(&records(&cluster).await).unwrap()),
        ("pods", serde_json::to_string(&pods(&cluster, "nublado-ada").await).unwrap()),
        ("log", service.log()),
    ] {
        for secret in ["nobody-sees-this", &token] {
            assert!(!text.contains(secret), "{secret} is in the {place}");
        }
    }
}

#[tokio::test]
async fn a_pool_ends_with_its_lab_unless_it_is_to_outlive_it() {
    let keeps = |config: &mut Value| {
        config["kubernetes"] = json!({ "namespaces": "single" });
        config["names"] = json!({ "namespace": "labs" });
        config["embedded"]["keep_labs"] = true.into();
    };
    let (mut service, ada) = with_lab("ada", keeps).await;
    run(&ada, "ada", "ends", json!(1)).await;
    let mut lasting = body(json!(1));
    lasting["outlive_lab"] = true.into();
    let endless = start(&ada, "ada", "stays", &lasting).await;
    assert_eq!(endless.problem().unwrap(), "422 invalid_pool");
    lasting["idle_timeout"] = 600.into();
    assert_eq!(start(&ada, "ada", "stays", &lasting).await.status, 303);
    until(&ada, "ada", "stays", is_running).await;
    let cluster = service.cluster().await.unwrap();
    until_workers(&cluster, "labs", 2).await;
    let events = ada.stop_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    until(&ada, "ada", "ends", Value::is_null).await;
    assert!(is_running(&ada.get(&path("ada", "stays")).await.unwrap().json().unwrap()));
    until_workers(&cluster, "labs", 1).await;
    service.crash_and_restart().await.unwrap();
    let ada = service.user("ada").unwrap();
    assert!(is_running(&until(&ada, "ada", "stays", is_running).await));
    ada.spawn_to_end("ada").await.unwrap();
    assert!(is_running(&ada.get(&path("ada", "stays")).await.unwrap().json().unwrap()));
    assert_eq!(stop(&ada, "ada", "stays").await.status, 202);
    until(&ada, "ada", "stays", Value::is_null).await;
    let cluster = service.cluster().await.unwrap();
    until_some(async || (pods(&cluster, "labs").await.len() == 1).then_some(())).await;
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
async fn a_pool_that_has_ended_or_failed_can_be_started_again() {
    let service = Service::start(BINARY).await.unwrap();
    let name = "fault.not-ready";
    let user = service.user(name).unwrap();
    let one = body(json!(1));
    assert_eq!(start(&user, name, "p", &one).await.problem().unwrap(), "404 unknown_lab");
    assert_eq!(user.spawn(name).await.unwrap().status, 303);
    assert_eq!(start(&user, name, "p", &one).await.problem().unwrap(), "409 lab_not_running");
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    let twice = join_all((0..2).map(|_| start(&ada, "ada", "p", &one))).await;
    let mut answers: Vec<u16> = twice.iter().map(|answer| answer.status).collect();
    answers.sort_unstable();
    assert_eq!(answers, [303, 409], "{twice:?}");
    until(&ada, "ada", "p", is_running).await;
    let cluster = service.cluster().await.unwrap();
    until_workers(&cluster, "nublado-ada", 1).await;
    let scheduler = of_component(&cluster, "nublado-ada", "dask-scheduler").await.pop().unwrap();
    end(&cluster, &scheduler, "Succeeded").await;
    until(&ada, "ada", "p", Value::is_null).await;
    until_workers(&cluster, "nublado-ada", 0).await;
    assert_eq!(scale(&ada, "ada", "p", json!(1)).await.problem().unwrap(), "404 unknown_pool");
    run(&ada, "ada", "p", json!(1)).await;
    for wrong in
        [json!({}), body(json!(-1)), json!({ "workers": 1, "tls": { "certificate": "x", "key": "y" } })]
    {
        assert_eq!(start(&ada, "ada", "q", &wrong).await.status, 422);
    }
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
    super::kernels::run(&ada, "ada", "k1").await;
    let second = super::kernels::start(&ada, "ada", "k2").await;
    assert!(second.body.contains("You may have 1 kernels at a time and have 1."), "{second:?}");
    let eve = service.user("eve").unwrap();
    eve.spawn_to_end("eve").await.unwrap();
    assert_eq!(start(&eve, "eve", "p", &body(json!(5))).await.status, 403);
    run(&eve, "eve", "p", json!(4)).await;
}
