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

/// Kubernetes itself refuses the second GPU, and the other group goes on.
#[tokio::test(flavor = "multi_thread")]
async fn groups_of_workers_are_admitted_and_one_that_is_refused_does_not_hold_up_another() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    let namespace = format!("{}-delete-ada", site.name());
    let mut service = service_with(
        &site,
        "delete",
        &format!("{}-delete-{{user_server}}", site.name()),
        |config| {
            config["http"]["labs_url"] = "http://wasmspawner.example.org:8090".into();
            let policy = &mut config["policies"][0]["config"];
            policy["sizes"] = json!([
                { "name": "small", "cpu": 1, "memory": "1Gi" },
                {
                    "name": "gpu", "cpu": 2, "memory": "2Gi", "extended": { "nvidia.com/gpu": 1 },
                    "tolerations": [{ "key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule" }],
                },
            ]);
            policy["options"] = json!([{ "name": "note", "kind": "text", "env": "NOTE" }]);
            policy["quota"] =
                json!({ "default": { "cpu": 40, "memory": "40Gi", "extended": { "nvidia.com/gpu": 1 } } });
        },
    );
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    let pods: Api<Pod> = Api::namespaced(site.cluster.client.clone(), &namespace);
    let group = async |name: &str| -> Vec<Pod> {
        let labels = format!("wasmspawner.io/dask-group={name}");
        let mut found = pods.list(&ListParams::default().labels(&labels)).await.unwrap().items;
        found.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        found
    };

    let groups = json!([
        { "name": "cpu", "workers": 1, "options": { "note": "$(HOME) of a group" } },
        { "name": "gpu", "workers": 2, "options": { "size": "gpu" } },
    ]);
    let sent = json!({ "groups": groups, "scheduler": { "options": { "size": "gpu" } }, "tls": tls() });
    let answer = post(&ada, "", sent).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    until(async || group("cpu").await.len() == 1 && group("gpu").await.len() == 1).await;
    let refusal = async || pool(&ada).await["workers"]["message"].as_str().unwrap_or_default().to_owned();
    until(async || refusal().await.starts_with("Your quota does not allow this")).await;
    // Many more of the other group come at once, while the second GPU is refused again and again.
    let scaled = |group: &'static str, workers: u32| {
        post(&ada, "/scale", json!({ "group": group, "workers": workers }))
    };
    let (cpu, gpu) = tokio::join!(scaled("cpu", 20), scaled("gpu", 3));
    assert_eq!((cpu.status, gpu.status), (202, 202), "{cpu:?} {gpu:?}");
    until(async || group("cpu").await.len() == 20).await;
    let gpus = group("gpu").await;
    let tolerates = |pod: &Pod| {
        let all = pod.spec.as_ref().unwrap().tolerations.clone().unwrap_or_default();
        all.iter().any(|toleration| toleration.key.as_deref() == Some("nvidia.com/gpu"))
    };
    assert!(tolerates(&gpus[0]) && !tolerates(&group("cpu").await[0]));
    let spec = gpus[0].spec.as_ref().unwrap();
    assert_eq!(
        spec.containers[0].resources.as_ref().unwrap().limits.as_ref().unwrap()["nvidia.com/gpu"].0,
        "1"
    );
    let all = pods.list(&ListParams::default()).await.unwrap().items;
    let is_scheduler = |pod: &&Pod| {
        let labels = pod.metadata.labels.as_ref().unwrap();
        labels.get("app.kubernetes.io/component").is_some_and(|component| component == "dask-scheduler")
    };
    let scheduler = all.iter().find(is_scheduler);
    assert!(tolerates(scheduler.unwrap()));
    let spec = scheduler.unwrap().spec.as_ref().unwrap();
    let limits = spec.containers[0].resources.as_ref().unwrap().limits.as_ref().unwrap();
    assert!(limits["cpu"].0 == "2" && !limits.contains_key("nvidia.com/gpu"), "it needs no GPU: {limits:?}");

    assert_eq!(scaled("gpu", 1).await.status, 202);
    until(async || refusal().await.is_empty()).await;
    // A worker was deleted while the service was away. It is replaced by one of its group.
    service.kill();
    let lost = gpus[0].metadata.name.as_deref().unwrap();
    pods.delete(lost, &DeleteParams::default()).await.unwrap();
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    until(async || {
        let now = group("gpu").await;
        now.len() == 1 && now[0].metadata.name.as_deref() != Some(lost)
    })
    .await;
    assert_eq!(group("cpu").await.len(), 20, "no other worker has come or gone");
    assert_eq!(ada.send(ada.request(Method::DELETE, &path())).await.unwrap().status, 202);
    until(async || pods.list(&ListParams::default()).await.unwrap().items.len() == 1).await;
    stop(&service, "ada").await;
    assert_permitted(&service);
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
