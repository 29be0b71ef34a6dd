//! Dask pools on a real API server, with exactly the permissions and under exactly the admission policy of labs.

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::kubernetes::SKIPPED;

use crate::kernels::names_with;
use crate::labs::{assert_permitted, service_with, stop};
use crate::site::{CLUSTER_WIDE, ONE_NAMESPACE, Site, until};

#[tokio::test(flavor = "multi_thread")]
async fn pools_start_scale_and_end_with_the_cluster_wide_permissions() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    let namespace = format!("{}-delete-ada", site.name());
    pools_in(&site, "delete", &format!("{}-delete-{{user_server}}", site.name()), &namespace).await;
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pools_start_scale_and_end_with_the_permissions_for_one_namespace() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    let labs = site.namespace("labs").await;
    pools_in(&site, "single", &labs, &labs).await;
    site.leave().await;
}

async fn pools_in(site: &Site, mode: &str, template: &str, namespace: &str) {
    let mut service = service_with(site, mode, template, |config| {
        config["http"]["labs_url"] = "http://wasmspawner.example.org:8090".into();
        // A lab, a scheduler and two workers use up the quota of CPUs, which is 8.
        config["policies"][0]["config"]["sizes"] = json!([{ "name": "part", "cpu": 2, "memory": "1Gi" }]);
    });
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    let client = site.cluster.client.clone();
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let names = async || -> Vec<String> {
        let all = pods.list(&ListParams::default()).await.unwrap();
        all.items.into_iter().filter_map(|pod| pod.metadata.name).collect()
    };
    let left = async || {
        let mut left = names_with(Api::<Secret>::namespaced(client.clone(), namespace), "-dask-").await;
        left.extend(names_with(Api::<ConfigMap>::namespaced(client.clone(), namespace), "-dask-").await);
        left.extend(names_with(Api::<NetworkPolicy>::namespaced(client.clone(), namespace), "-dask-").await);
        left
    };

    run(&ada, 1).await;
    until(async || names().await.len() == 3).await;
    assert_eq!(scale(&ada, 2).await.status, 202);
    until(async || names().await.len() == 4).await;
    if mode == "delete" {
        assert_eq!(scale(&ada, 3).await.status, 202);
        let why = async || pool(&ada).await["workers"]["message"].as_str().unwrap_or_default().to_owned();
        until(async || why().await.starts_with("Your quota does not allow this")).await;
        assert_eq!(scale(&ada, 2).await.status, 202);
        until(async || why().await.is_empty()).await;
    }
    // A worker was deleted while the service was away. The service replaces it.
    service.kill();
    let worker = names_with(pods.clone(), "-dask-pool-").await.into_iter().max_by_key(String::len).unwrap();
    pods.delete(&worker, &DeleteParams::default()).await.unwrap();
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    until(async || names().await.len() == 4 && !names().await.contains(&worker)).await;

    assert_eq!(ada.send(ada.request(Method::DELETE, &path())).await.unwrap().status, 202);
    until(async || ada.get(&path()).await.unwrap().status == 404).await;
    until(async || site.spawns().list(&ListParams::default()).await.unwrap().items.len() == 1).await;
    assert_eq!((left().await, names().await.len()), (Vec::new(), 1));

    // The service is away when the lab's pod ends: the cluster deletes scheduler and workers, and the service the rest.
    run(&ada, 2).await;
    until(async || names().await.len() == 4).await;
    service.kill();
    pods.delete("nb-ada", &DeleteParams::default()).await.unwrap();
    until(async || names().await.is_empty()).await;
    service.run().await.unwrap();
    until(async || site.spawns().list(&ListParams::default()).await.unwrap().items.is_empty()).await;
    if mode == "single" {
        assert_eq!(left().await, [""; 0]);
    }

    let ada = service.user("ada").unwrap();
    until(async || ada.lab("ada").await.unwrap().status == 404).await;
    ada.spawn_to_end("ada").await.unwrap();
    run(&ada, 2).await;
    stop(&service, "ada").await;
    until(async || site.spawns().list(&ListParams::default()).await.unwrap().items.is_empty()).await;
    assert_eq!(names().await, [""; 0]);
    if mode == "single" {
        a_pool_outlives_its_lab(&ada, site, &pods).await;
        assert_eq!(left().await, [""; 0]);
    }
    assert_permitted(&service);
}

/// The pool's workers are admitted without the lab's service account, and have no more connections than labs.
async fn a_pool_outlives_its_lab(ada: &Client, site: &Site, pods: &Api<Pod>) {
    let names = async || names_with(pods.clone(), "nb-ada").await;
    ada.spawn_to_end("ada").await.unwrap();
    let lasting = json!({ "workers": 1, "tls": tls(), "outlive_lab": true, "idle_timeout": 600 });
    assert_eq!(post(ada, "", lasting).await.status, 201);
    until(async || names().await.len() == 3).await;
    let events = ada.stop_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    assert_eq!(scale(ada, 2).await.status, 202);
    until(async || names().await.len() == 3).await;
    let policies: Api<NetworkPolicy> =
        Api::namespaced(site.cluster.client.clone(), pods.namespace().unwrap());
    let own = policies.list(&ListParams::default()).await.unwrap().items;
    let own = own.into_iter().find(|policy| policy.metadata.name.as_ref().unwrap().contains("-dask-"));
    assert!(own.unwrap().spec.unwrap().egress.is_some(), "the lab's policy has gone with the lab");
    assert_eq!(ada.send(ada.request(Method::DELETE, &path())).await.unwrap().status, 202);
    until(async || site.spawns().list(&ListParams::default()).await.unwrap().items.is_empty()).await;
    assert_eq!(names().await, [""; 0]);
}

fn path() -> String {
    format!("{PREFIX}/labs/ada/dask-pools/survey")
}

async fn post(ada: &Client, below: &str, body: Value) -> Answer {
    ada.send(ada.request(Method::POST, &format!("{}{below}", path())).json(&body)).await.unwrap()
}

async fn scale(ada: &Client, workers: u32) -> Answer {
    post(ada, "/scale", json!({ "workers": workers })).await
}

async fn pool(ada: &Client) -> Value {
    ada.get(&path()).await.unwrap().json().unwrap()
}

fn tls() -> Value {
    json!({
        "certificate": "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        "key": "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
    })
}

async fn run(ada: &Client, workers: u32) {
    let answer = post(ada, "", json!({ "workers": workers, "tls": tls() })).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    until(async || pool(ada).await["status"] == "running").await;
}
