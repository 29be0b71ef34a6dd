//! Two thousand users with all kinds of names: API servers accept all objects of their labs, both the embedded one and
//! a real Kubernetes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures and skipped tests are printed")]

mod lab;
mod people;
mod same;

use std::collections::BTreeSet;
use std::env;
use std::time::Instant;

use futures::stream::{self, StreamExt, TryStreamExt};
use kube::Client;
use serde_json::{Value, json};
use wasmspawner_core::manifest::LabObject;
use wasmspawner_embedded::apiserver::{self, ApiServer};
use wasmspawner_tests::kubernetes::{Cluster, SKIPPED};

use lab::lab;
use people::People;

const LABS: usize = 2_000;

/// Number of labs that are tried on a real Kubernetes, unless the variable `NAMES` is set.
const SAMPLE: usize = 200;

#[tokio::test]
async fn every_object_of_two_thousand_labs_is_accepted() {
    let client = ApiServer::open(apiserver::Options::default()).unwrap().client();
    let (mut namespaces, mut objects) = (BTreeSet::new(), 0);
    for (user, server) in People::new().take(LABS) {
        for object in lab(&user, &server).in_order() {
            // All servers of a user share the namespace.
            if object.kind() == "Namespace" && !namespaces.insert(object.name().to_owned()) {
                continue;
            }
            let namespace = object.metadata().namespace.clone().unwrap_or_default();
            if let Err(refusal) = post(&client, collection(&object, &namespace), &object.to_value()).await {
                panic!("{object:?} of user {user:?}, server {server:?}: {refusal}");
            }
            objects += 1;
        }
    }
    assert!(objects > LABS * 6, "{objects} objects");
}

/// The path and body of a request that asks a server to accept the object. A dry run makes all checks and stores
/// nothing. Namespaced objects are tried in the test's own namespace, because a dry run needs an existing one. Service
/// accounts are really created there, because pods are refused without them.
fn attempt(object: &LabObject, namespace: &str) -> (String, Value) {
    let mut path = collection(object, namespace);
    if object.kind() != "ServiceAccount" {
        path.push_str("?dryRun=All");
    }
    let mut value = object.to_value();
    if object.kind() != "Namespace" {
        value["metadata"]["namespace"] = json!(namespace);
    }
    (path, value)
}

#[tokio::test]
async fn a_kubernetes_accepts_the_objects_of_generated_labs() {
    let Some(cluster) = Cluster::enter("names").await.unwrap() else { return println!("{SKIPPED}") };
    let labs = env::var("NAMES").map_or(SAMPLE, |labs| labs.parse().unwrap());
    let begun = Instant::now();
    let objects: usize = stream::iter(People::new().take(labs))
        .map(async |(user, server)| {
            let mut objects = 0;
            for object in lab(&user, &server).in_order() {
                let (path, value) = attempt(&object, &cluster.namespace);
                if let Err(refusal) = post(&cluster.client, path, &value).await {
                    return Err(format!("{object:?} of user {user:?}, server {server:?}: {refusal}"));
                }
                objects += 1;
            }
            Ok(objects)
        })
        .buffer_unordered(16)
        .try_fold(0, async |sum, objects| Ok(sum + objects))
        .await
        .unwrap();
    println!("{labs} labs, {objects} objects accepted in {:.1?}", begun.elapsed());
    assert!(objects > labs * 6, "{objects} objects");
    cluster.leave().await.unwrap();
}

/// Without this test the tests above could pass with a server that accepts everything.
#[tokio::test]
async fn the_embedded_api_server_refuses_bad_names() {
    let client = ApiServer::open(apiserver::Options::default()).unwrap().client();
    refuses_bad_names(&client, "default").await;
}

#[tokio::test]
async fn a_kubernetes_refuses_bad_names() {
    let Some(cluster) = Cluster::enter("names").await.unwrap() else { return println!("{SKIPPED}") };
    refuses_bad_names(&cluster.client, &cluster.namespace).await;
    cluster.leave().await.unwrap();
}

async fn refuses_bad_names(client: &Client, namespace: &str) {
    for name in ["", "-ada", "Ada", "ada_l", "é", &"a".repeat(254)] {
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
        let collection = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
        let refusal = post(client, collection, &body).await.unwrap_err();
        assert!(matches!(&refusal, kube::Error::Api(status) if status.code == 422), "{name:?}: {refusal}");
    }
}

/// The path at which objects of this kind are created.
fn collection(object: &LabObject, namespace: &str) -> String {
    match object.kind() {
        "Namespace" => "/api/v1/namespaces".to_owned(),
        kind => {
            let group = if kind == "NetworkPolicy" { "/apis/networking.k8s.io/v1" } else { "/api/v1" };
            let plural = kind.to_lowercase().replace("policy", "policie") + "s";
            format!("{group}/namespaces/{namespace}/{plural}")
        }
    }
}

async fn post(client: &Client, collection: String, object: &Value) -> Result<Value, kube::Error> {
    let body = serde_json::to_vec(object).unwrap();
    let request =
        http::Request::post(collection).header("content-type", "application/json").body(body).unwrap();
    client.request(request).await
}
