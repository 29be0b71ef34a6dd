//! The embedded API server stores a lab's objects exactly as a real Kubernetes does.

use serde_json::{Value, json};
use wasmspawner_embedded::apiserver::{self, ApiServer};
use wasmspawner_tests::kubernetes::{Cluster, SKIPPED};

use super::lab::lab;
use super::people::People;
use super::{attempt, post};

const LABS: usize = 25;

#[tokio::test]
async fn embedded_and_real_api_servers_return_the_same_object() {
    let Some(cluster) = Cluster::enter("names").await.unwrap() else { return println!("{SKIPPED}") };
    let embedded = ApiServer::open(apiserver::Options::default()).unwrap().client();
    let own = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": cluster.namespace } });
    post(&embedded, "/api/v1/namespaces".to_owned(), &own).await.unwrap();
    for (user, server) in People::new().take(LABS) {
        for object in lab(&user, &server).in_order() {
            let (path, value) = attempt(&object, &cluster.namespace);
            let real = post(&cluster.client, path.clone(), &value).await.unwrap();
            let ours = post(&embedded, path, &value).await.unwrap();
            assert_eq!(without_chance(ours), without_chance(real), "{object:?} of {user:?}, {server:?}");
        }
    }
    cluster.leave().await.unwrap();
}

/// The object without values that differ in every run, without managed fields, and without the finalizer of the
/// controller that waits for the pods of a claim.
fn without_chance(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        metadata.remove(field);
    }
    if object["kind"] == "PersistentVolumeClaim" {
        object["metadata"].as_object_mut().unwrap().remove("finalizers");
    }
    object
}
