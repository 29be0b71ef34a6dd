//! Objects that the API server stores, but that the libraries of Kubernetes' clients cannot read.

use serde_json::{Value, json};
use wasmspawner_tests::kubernetes::SKIPPED;

use crate::labs::{labels_of_nobody, service};
use crate::site::{CLUSTER_WIDE, Site};

/// A time that is later than any time that the libraries can represent.
const NEVER: &str = "9999-12-31T23:59:59Z";

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_read_keeps_nobody_from_a_lab() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    let theirs = site.namespace("theirs").await;
    let send = async |method: &str, path: &str, kind: &str, body: Value| {
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.body(serde_json::to_vec(&body).unwrap()).unwrap();
        site.cluster.client.request::<Value>(request).await.unwrap()
    };
    let namespace = format!("/api/v1/namespaces/{theirs}");
    // The API server records the author of each change, and lets everybody write its time. No other test has such
    // labels.
    let patch = json!([
        { "op": "add", "path": "/metadata/annotations", "value": { "secret": "of-somebody" } },
        { "op": "add", "path": "/metadata/labels", "value": labels_of_nobody(&site) },
        { "op": "replace", "path": "/metadata/managedFields/0/time", "value": NEVER },
    ]);
    let patched = format!("{namespace}?fieldManager=late");
    let patched = send("PATCH", &patched, "application/json-patch+json", patch).await;
    assert!(patched["metadata"]["managedFields"].to_string().contains(NEVER), "{patched:#}");
    let event = json!({ "metadata": { "name": "late" }, "lastTimestamp": NEVER,
        "involvedObject": { "kind": "Pod", "name": "late", "namespace": theirs } });
    send("POST", &format!("{namespace}/events"), "application/json", event).await;

    let template = format!("{}-late-{{user_server}}", site.name());
    let mut service = service(&site, "delete", &template);
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.spawn_to_end("ada").await.unwrap().last().unwrap().kind, "complete");
    service.logged("cannot be read and is left out").await.unwrap();
    let log = service.log();
    assert!(!log.contains("of-somebody"), "what cannot be read is not in the log");
    // This lets the test read its namespaces, too.
    let cleared = json!({ "metadata": { "managedFields": [{}] } });
    send("PATCH", &namespace, "application/merge-patch+json", cleared).await;
    site.leave().await;
}
