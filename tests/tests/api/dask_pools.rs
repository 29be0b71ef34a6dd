//! Dask pools: a scheduler and workers below a lab, as many as the scheduler needs and the user may have.

use futures::future::join_all;
use http::Method;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Client as Cluster;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::events::Events;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use super::kernels::{pods, records, with_lab};
use crate::BINARY;

/// The secret of a pool, which only its pods and its client may see.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nnobody-sees-this\n-----END PRIVATE KEY-----\n";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nanybody\n-----END CERTIFICATE-----\n";

pub(crate) fn body(workers: impl Into<Value>) -> Value {
    let workers: Value = workers.into();
    json!({ "workers": workers, "tls": { "certificate": CERTIFICATE, "key": KEY } })
}

pub(crate) fn path(lab: &str, pool: &str) -> String {
    format!("{PREFIX}/labs/{lab}/dask-pools/{pool}")
}

async fn post(client: &Client, at: &str, sent: &Value) -> Answer {
    client.send(client.request(Method::POST, at).json(sent)).await.unwrap()
}

pub(crate) async fn start(client: &Client, lab: &str, pool: &str, sent: &Value) -> Answer {
    post(client, &path(lab, pool), sent).await
}

pub(crate) async fn stop(client: &Client, lab: &str, pool: &str) -> Answer {
    client.send(client.request(Method::DELETE, &path(lab, pool))).await.unwrap()
}

pub(crate) async fn scale(client: &Client, lab: &str, pool: &str, workers: Value) -> Answer {
    post(client, &format!("{}/scale", path(lab, pool)), &json!({ "workers": workers })).await
}

/// Returns the pool as soon as `wanted` is true for it; `Null` if there is none.
pub(crate) async fn until(client: &Client, lab: &str, pool: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    until_some(async || {
        let answer = client.get(&path(lab, pool)).await.unwrap();
        let now = if answer.status == 404 { Value::Null } else { answer.json().unwrap() };
        wanted(&now).then_some(now)
    })
    .await
}

pub(crate) fn is_running(pool: &Value) -> bool {
    pool["status"] == "running"
}

pub(crate) async fn run(client: &Client, lab: &str, pool: &str, workers: Value) -> Value {
    let answer = start(client, lab, pool, &body(workers)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
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

/// Waits until this number of workers exists that are not being deleted.
pub(crate) async fn until_workers(cluster: &Cluster, namespace: &str, count: usize) -> Vec<Pod> {
    until_some(async || {
        let mut now = workers(cluster, namespace).await;
        now.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        (now.len() == count).then_some(now)
    })
    .await
}

/// Waits until this number of workers is running and ready. After that, their kubelet reports nothing more about them.
pub(crate) async fn until_running(cluster: &Cluster, namespace: &str, count: usize) -> Vec<Pod> {
    until_some(async || {
        let mut now = workers(cluster, namespace).await;
        let conditions = |pod: &Pod| pod.status.clone().unwrap().conditions.unwrap_or_default();
        now.retain(|pod| conditions(pod).iter().any(|has| has.type_ == "Ready" && has.status == "True"));
        (now.len() == count).then_some(now)
    })
    .await
}

/// A client for the program within a pool's scheduler, which has a token of its own. The namespace has one pool.
pub(crate) async fn keeper(service: &Service, namespace: &str) -> Client {
    let cluster = service.cluster().await.unwrap();
    let scheduler = of_component(&cluster, namespace, "dask-scheduler").await.pop().unwrap();
    let secrets: Api<Secret> = Api::namespaced(cluster, namespace);
    let secret = secrets.get(scheduler.metadata.name.as_ref().unwrap()).await.unwrap();
    let token = String::from_utf8(secret.data.unwrap()["dask.token"].0.clone()).unwrap();
    service.stranger().with_token(&token)
}

pub(crate) async fn report(keeper: &Client, lab: &str, pool: &str, ready: u32, wanted: u32) -> Answer {
    let request = keeper.request(Method::PUT, &format!("{}/scheduler", path(lab, pool)));
    keeper.send(request.json(&json!({ "ready": ready, "wanted": wanted }))).await.unwrap()
}

pub(crate) async fn connect(keeper: &Client, lab: &str, pool: &str) -> Events {
    let request = keeper.request(Method::GET, &format!("{}/scheduler", path(lab, pool)));
    Events::from_response(request.send().await.unwrap().error_for_status().unwrap())
}

/// Ends a worker with this phase, as its own process would.
pub(crate) async fn end(cluster: &Cluster, worker: &Pod, phase: &str) {
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
    let listed = ada.get(&format!("{PREFIX}/labs/ada/dask-pools")).await.unwrap().json().unwrap();
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
    until_running(&cluster, "nublado-ada", 4).await;
    // The scheduler wants fewer workers. No worker is deleted until it has ended on its own.
    report(&keeper, "ada", "p", 4, 2).await;
    orders.until("\"target\":2").await.unwrap();
    until(&ada, "ada", "p", |pool| pool["workers"]["desired"] == 2).await;
    assert_eq!(until_workers(&cluster, "nublado-ada", 4).await.len(), 4);
    for retired in &four[..2] {
        end(&cluster, retired, "Succeeded").await;
    }
    let left = until_workers(&cluster, "nublado-ada", 2).await;
    assert!(left.iter().all(|pod| four[2..].iter().any(|kept| kept.metadata.uid == pod.metadata.uid)));
    // A worker that somebody deletes is replaced.
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
    assert_eq!(start(&ada, "ada", "stays", &lasting).await.status, 201);
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
    assert_eq!(answers, [201, 409], "{twice:?}");
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
