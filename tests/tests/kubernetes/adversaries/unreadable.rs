//! Somebody whose objects the libraries of Kubernetes' clients cannot read, though the API server stores them.

use serde_json::{Value, json};
use wasmspawner_tests::kubernetes::SKIPPED;

use crate::labs::{labels_of_nobody, service};
use crate::site::{CLUSTER_WIDE, Site};

/// A time that is later than all times of the libraries.
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
    let objects = format!("/api/v1/namespaces/{theirs}");
    let pod = json!({ "metadata": { "name": "late", "labels": labels_of_nobody(&site) },
        "spec": { "containers": [{ "name": "c", "image": "example.org/x:1" }] } });
    send("POST", &format!("{objects}/pods"), "application/json", pod).await;
    // The API server notes who changes what, and lets everybody write the time of it.
    let patch = json!([
        { "op": "add", "path": "/metadata/labels/changed", "value": "yes" },
        { "op": "replace", "path": "/metadata/managedFields/0/time", "value": NEVER },
    ]);
    let changed = send(
        "PATCH",
        &format!("{objects}/pods/late?fieldManager=late"),
        "application/json-patch+json",
        patch,
    )
    .await;
    assert!(changed["metadata"]["managedFields"].to_string().contains(NEVER), "{changed:#}");
    let event = json!({ "metadata": { "name": "late" }, "lastTimestamp": NEVER,
        "involvedObject": { "kind": "Pod", "name": "late", "namespace": theirs } });
    send("POST", &format!("{objects}/events"), "application/json", event).await;

    let template = format!("{}-late-{{user_server}}", site.name());
    let mut service = service(&site, "delete", &template);
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.spawn_to_end("ada").await.unwrap().last().unwrap().kind, "complete");
    service.logged("cannot be read and is left out").await.unwrap();
    let log = service.log();
    assert!(!log.contains("example.org/x:1"), "what cannot be read is not in the log");
    site.leave().await;
}
