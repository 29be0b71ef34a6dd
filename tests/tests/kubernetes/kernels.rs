//! Kernels on a real API server, with exactly the permissions and under exactly the admission policy of labs.

use std::collections::BTreeMap;
use std::fmt::Debug;

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota, Secret};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{Api, DeleteParams, ListParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::kubernetes::SKIPPED;

use crate::labs::{assert_permitted, service_with, stop};
use crate::site::{CLUSTER_WIDE, ONE_NAMESPACE, Site, until, until_within_a_minute};

const KERNEL: &str = "4d1a30f9-3e9b-4f6e-8f0a-7a1a0ecb2a1f";

#[tokio::test(flavor = "multi_thread")]
async fn kernels_start_and_end_with_the_cluster_wide_permissions() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    let namespace = format!("{}-delete-ada", site.name());
    kernels_in(&site, "delete", &format!("{}-delete-{{user_server}}", site.name()), &namespace).await;
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kernels_start_and_end_with_the_permissions_for_one_namespace() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    let labs = site.namespace("labs").await;
    kernels_in(&site, "single", &labs, &labs).await;
    site.leave().await;
}

async fn kernels_in(site: &Site, mode: &str, template: &str, namespace: &str) {
    let mut service = service_with(site, mode, template, |config| {
        config["http"]["labs_url"] = "http://wasmspawner.example.org:8090".into();
        // A lab and one kernel use up the quota of CPUs, which is 8.
        config["policies"][0]["config"]["sizes"] = json!([{ "name": "half", "cpu": 4, "memory": "1Gi" }]);
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

    run(&ada).await;
    assert_eq!(names().await.len(), 2);
    if mode == "delete" {
        let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), namespace);
        let quota = quotas.list(&ListParams::default()).await.unwrap().items.remove(0).status.unwrap();
        let cpus = |amounts: Option<BTreeMap<String, Quantity>>| amounts.unwrap()["limits.cpu"].clone();
        assert_eq!(cpus(quota.used), cpus(quota.hard), "the cluster counts the lab, and its kernel");
        let second = format!("{PREFIX}/labs/ada/kernels/more");
        assert_eq!(start(&ada, &second).await.status, 201);
        let failed = kernel_that_is("failed", &ada, &second).await;
        assert_eq!(failed["reason"], "QuotaExceeded", "{failed:#}");
        assert!(
            failed["message"].as_str().unwrap().starts_with("Your quota does not allow this"),
            "{failed:#}"
        );
        assert_eq!(ada.send(ada.request(Method::DELETE, &second)).await.unwrap().status, 202);
    }
    let end = ada.request(Method::DELETE, &path());
    assert_eq!(ada.send(end).await.unwrap().status, 202);
    until(async || ada.get(&path()).await.unwrap().status == 404).await;
    until(async || site.spawns().list(&ListParams::default()).await.unwrap().items.len() == 1).await;
    let left = async || {
        let mut left = names_with(Api::<Secret>::namespaced(client.clone(), namespace), "-kernel-").await;
        left.extend(names_with(Api::<ConfigMap>::namespaced(client.clone(), namespace), "-kernel-").await);
        left.extend(
            names_with(Api::<NetworkPolicy>::namespaced(client.clone(), namespace), "-kernel-").await,
        );
        left
    };
    assert_eq!(left().await, [""; 0]);

    // The service is away when the lab's pod ends: the cluster deletes the kernel, and the service the rest.
    run(&ada).await;
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
    run(&ada).await;
    stop(&service, "ada").await;
    until(async || site.spawns().list(&ListParams::default()).await.unwrap().items.is_empty()).await;
    assert_eq!(names().await, [""; 0]);
    assert_permitted(&service);
}

/// The names of objects that contain this part.
pub(crate) async fn names_with<K: Clone + DeserializeOwned + Debug>(
    objects: Api<K>,
    part: &str,
) -> Vec<String> {
    let found = objects.list_metadata(&ListParams::default()).await.unwrap().items;
    let names = found.into_iter().filter_map(|object| object.metadata.name);
    names.filter(|name| name.contains(part)).collect()
}

fn path() -> String {
    format!("{PREFIX}/labs/ada/kernels/{KERNEL}")
}

async fn start(ada: &Client, path: &str) -> Answer {
    let body = json!({
        "kernel_name": "python3",
        "command": ["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "connection": { "key": "k", "signature_scheme": "hmac-sha256" },
    });
    ada.send(ada.request(Method::POST, path).json(&body)).await.unwrap()
}

async fn run(ada: &Client) {
    let answer = start(ada, &path()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    kernel_that_is("running", ada, &path()).await;
}

/// Waits until a kernel has this status, for a minute at most. Returns the service's report of the kernel.
async fn kernel_that_is(status: &str, ada: &Client, path: &str) -> Value {
    let mut kernel = Value::Null;
    let has_status = until_within_a_minute(async || {
        kernel = ada.get(path).await.unwrap().json().unwrap();
        kernel["status"] == status
    });
    assert!(has_status.await, "the kernel was not {status} within a minute: {kernel:#}");
    kernel
}
