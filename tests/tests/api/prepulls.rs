//! Images that nodes pull before anyone asks for them. The simulated kubelet of the one-machine cluster is the node
//! `this-machine`. The test is the kubelet of every other node.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

const IMAGE: &str = "quay.io/site/lab:1";

/// A site whose nodes pull the image.
fn pulling(config: &mut Value) {
    config["embedded"]["keep_labs"] = true.into();
    config["images"] = json!({ "nodes": {}, "prepull": { "images": [{ "reference": IMAGE }] } });
}

async fn pods(service: &Service) -> Api<Pod> {
    Api::namespaced(service.cluster().await.unwrap(), "wasmspawner")
}

async fn nodes(service: &Service) -> Api<Node> {
    Api::all(service.cluster().await.unwrap())
}

async fn add_node(service: &Service, name: &str) {
    let node = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    nodes(service).await.create(&PostParams::default(), &node).await.unwrap();
}

/// The pod that pulls on a node.
async fn pod_on(service: &Service, node: &str) -> Pod {
    let pods = pods(service).await;
    until_some(async || {
        let mut listed = pods.list(&ListParams::default()).await.unwrap().items;
        listed.retain(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(node)));
        listed.pop()
    })
    .await
}

async fn set_status(service: &Service, pod: &Pod, status: Value) {
    let patch = Patch::Merge(json!({ "status": status }));
    let pods = pods(service).await;
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await.unwrap();
}

/// Returns the answer of `GET /prepulls` once it satisfies `wanted`.
async fn until_prepulls(service: &Service, wanted: impl Fn(&Value) -> bool) -> Value {
    let admin = service.admin().unwrap();
    until_some(async || {
        let answer = admin.get("/spawner/v1/prepulls").await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        Some(answer.json().unwrap()).filter(&wanted)
    })
    .await
}

async fn until_no_pod(service: &Service) {
    let pods = pods(service).await;
    until_some(async || pods.list(&ListParams::default()).await.unwrap().items.is_empty().then_some(()))
        .await;
}

#[tokio::test]
async fn nodes_pull_what_they_are_to_have_and_no_pod_stays() {
    let service = Service::start_with(BINARY, pulling).await.unwrap();
    let warm = until_prepulls(&service, |answer| answer["images"][0]["nodes_with"] == 1).await;
    assert_eq!(
        (&warm["enabled"], &warm["problem"], &warm["images"]),
        (
            &json!(true),
            &Value::Null,
            &json!([{ "reference": IMAGE, "digest": null, "node_selector": {}, "nodes": 1, "nodes_with": 1 }])
        )
    );
    until_no_pod(&service).await;
    until_prepulls(&service, |answer| answer["running"] == json!([])).await;

    // A node that is added later pulls at once.
    add_node(&service, "new").await;
    let pod = pod_on(&service, "new").await;
    let spec = serde_json::to_value(pod.spec.clone().unwrap()).unwrap();
    assert_eq!(spec["containers"][0]["image"], IMAGE);
    assert_eq!(spec["automountServiceAccountToken"], false);
    assert!(spec["volumes"].is_null() && spec["restartPolicy"] == "Never", "{spec:#}");
    let running = until_prepulls(&service, |answer| answer["running"] != json!([])).await;
    assert_eq!(running["running"][0]["node"], "new", "{running:#}");
    set_status(&service, &pod, json!({ "phase": "Succeeded" })).await;
    until_no_pod(&service).await;
    let status = json!({ "status": { "images": [{ "names": [IMAGE] }] } });
    nodes(&service).await.patch_status("new", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    until_prepulls(&service, |answer| answer["images"][0]["nodes_with"] == 2).await;

    let metrics = service.probes().get("/metrics").await.unwrap().body;
    for line in ["wasmspawner_prepulls_total{outcome=\"pulled\"} 2", "wasmspawner_prepulls_missing 0"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert_eq!(service.user("ada").unwrap().get("/spawner/v1/prepulls").await.unwrap().status, 403);
}

#[tokio::test]
async fn a_node_that_cannot_pull_is_reported_and_holds_up_no_other() {
    let service = Service::start_with(BINARY, |config| {
        pulling(config);
        config["images"]["prepull"]["at_once"] = 1.into();
    })
    .await
    .unwrap();
    until_prepulls(&service, |answer| answer["images"][0]["nodes_with"] == 1).await;
    let cordoned = json!({ "metadata": { "name": "cordoned" }, "spec": { "unschedulable": true } });
    let cordoned = serde_json::from_value(cordoned).unwrap();
    nodes(&service).await.create(&PostParams::default(), &cordoned).await.unwrap();
    add_node(&service, "full").await;
    let refused = json!({ "phase": "Failed", "reason": "OutOfpods", "message": "too many pods" });
    set_status(&service, &pod_on(&service, "full").await, refused).await;
    add_node(&service, "offline").await;
    let waiting = json!({ "waiting": { "reason": "ErrImagePull", "message": "dial tcp: i/o timeout" } });
    let container = json!({ "name": "pull", "image": IMAGE, "imageID": "", "ready": false, "restartCount": 0, "state": waiting });
    let offline = pod_on(&service, "offline").await;
    set_status(&service, &offline, json!({ "phase": "Pending", "containerStatuses": [container] })).await;

    let report = until_prepulls(&service, |answer| answer["failed_count"] == 2).await;
    let reasons: Vec<_> =
        report["failed"].as_array().unwrap().iter().map(|failed| &failed["reason"]).collect();
    assert_eq!(
        reasons,
        ["ErrImagePull: dial tcp: i/o timeout", "OutOfpods: too many pods"],
        "the last one first"
    );
    assert_eq!(report["excluded_nodes"], json!([{ "name": "cordoned", "excluded": "it is cordoned" }]));
    assert_eq!(report["images"][0]["nodes"], 3, "without the one that is cordoned");
    until_no_pod(&service).await;
    service.logged("a node cannot pull an image in advance").await.unwrap();
}

#[tokio::test]
async fn what_is_pulled_goes_on_after_a_crash_and_ends_when_it_is_not_needed() {
    let mut service = Service::start_with(BINARY, pulling).await.unwrap();
    add_node(&service, "slow").await;
    let before = pod_on(&service, "slow").await;
    // A pod can be seen a moment before it is on disk. After the answer to a later change, both are on disk.
    let later = Patch::Merge(json!({ "metadata": { "annotations": { "seen": "true" } } }));
    nodes(&service).await.patch("slow", &PatchParams::default(), &later).await.unwrap();
    service.crash_and_restart().await.unwrap();
    let on_slow = |answer: &Value| {
        let running = answer["running"].as_array().unwrap();
        running.iter().find(|pull| pull["node"] == "slow").map(|pull| pull["pod"].clone())
    };
    let running = until_prepulls(&service, |answer| on_slow(answer).is_some()).await;
    assert_eq!(on_slow(&running), Some(before.name_any().into()));
    assert_eq!(pod_on(&service, "slow").await.uid(), before.uid(), "it is the same pod");

    // The node disappears, and comes back under the same name. After that, nothing is left to pull.
    nodes(&service).await.delete("slow", &DeleteParams::default()).await.unwrap();
    until_no_pod(&service).await;
    add_node(&service, "slow").await;
    pod_on(&service, "slow").await;
    service.reconfigure(|config| config["images"]["prepull"] = Value::Null).unwrap();
    let reloaded = service.admin().unwrap();
    let reload = reloaded.request(http::Method::POST, "/spawner/v1/config/reload");
    assert_eq!(reloaded.send(reload).await.unwrap().status, 200);
    until_no_pod(&service).await;
    until_prepulls(&service, |answer| answer["enabled"] == false).await;
}

#[tokio::test]
async fn pods_of_others_are_left_alone_and_never_taken_for_a_lab() {
    let service = Service::start_with(BINARY, pulling).await.unwrap();
    let pods = pods(&service).await;
    let labels = json!({ "wasmspawner.io/prepull": "wasmspawner", "app.kubernetes.io/component": "prepull" });
    let container = json!({ "name": "hub", "image": "hub:1" });
    for name in ["hub", "wasmspawner-pull-00000000000000000000"] {
        let pod = json!({
            "metadata": { "name": name, "labels": labels },
            "spec": { "containers": [container], "nodeName": "elsewhere" },
        });
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    }
    add_node(&service, "slow").await;
    pod_on(&service, "slow").await;
    until_prepulls(&service, |answer| {
        answer["images"][0]["nodes_with"] == 1 && answer["running"].as_array().unwrap().len() == 1
    })
    .await;
    let left: Vec<_> = pods.list(&ListParams::default()).await.unwrap().iter().map(Pod::name_any).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    let admin = service.admin().unwrap();
    assert_eq!(admin.get("/spawner/v1/orphans").await.unwrap().json().unwrap(), json!([]));
    assert_eq!(admin.get("/spawner/v1/labs").await.unwrap().json().unwrap(), json!([]));
}

#[tokio::test]
async fn without_anything_wanted_nodes_are_to_have_the_lab_s_image() {
    let service = Service::start_with(BINARY, |config| {
        config["images"] = json!({ "nodes": {}, "prepull": {} });
        config["lab"]["image"] = "quay.io/site/only:1".into();
    })
    .await
    .unwrap();
    let report = until_prepulls(&service, |answer| answer["images"][0]["nodes_with"] == 1).await;
    assert_eq!(report["images"][0]["reference"], "quay.io/site/only:1");
    let service = Service::start(BINARY).await.unwrap();
    until_prepulls(&service, |answer| answer["enabled"] == false).await;
}

#[tokio::test]
async fn what_the_policies_want_comes_first_and_one_that_fails_keeps_nothing_else_from_its_node() {
    let site = |reference: &str| {
        let images = json!([{ "name": "lab", "reference": reference, "prepull": true }]);
        let policy = json!({ "name": "default", "path": guests::component("policy-default"), "config": { "images": images } });
        move |config: &mut Value| {
            pulling(config);
            config["policies"] = json!([policy]);
        }
    };
    let service = Service::start_with(BINARY, site("quay.io/site/wanted:1")).await.unwrap();
    let warm = until_prepulls(&service, |answer| answer["images"][1]["nodes_with"] == 1).await;
    assert_eq!(warm["images"][0]["reference"], "quay.io/site/wanted:1", "{warm:#}");
    let service = Service::start_with(BINARY, site("Not an image")).await.unwrap();
    let report = until_prepulls(&service, |answer| answer["images"][0]["nodes_with"] == 1).await;
    assert_eq!(report["images"][0]["reference"], IMAGE);
    let problem = report["problem"].as_str().unwrap();
    assert!(problem.contains("`default`") && problem.contains("Not an image"), "{problem}");
}

#[tokio::test]
async fn a_registry_that_does_not_answer_keeps_no_image_from_its_node() {
    let service = Service::start_with(BINARY, |config| {
        pulling(config);
        config["images"]["repositories"] = json!([{ "name": "127.0.0.1:1/site/lab" }]);
        config["registries"] = json!({ "plain_http": ["127.0.0.1:1"] });
    })
    .await
    .unwrap();
    until_prepulls(&service, |answer| answer["images"][0]["nodes_with"] == 1).await;
}

#[tokio::test]
async fn what_a_former_configuration_has_begun_is_removed_at_the_next_start() {
    let mut service = Service::start_with(BINARY, pulling).await.unwrap();
    add_node(&service, "slow").await;
    pod_on(&service, "slow").await;
    service.end().unwrap();
    service.reconfigure(|config| config["embedded"]["keep_labs"] = true.into()).unwrap();
    service.run().await.unwrap();
    until_no_pod(&service).await;
}

#[tokio::test]
async fn a_refused_pod_is_reported_and_holds_up_no_other() {
    let service = Service::start_with(BINARY, |config| {
        config["images"] = json!({ "nodes": {}, "prepull": {} });
        config["lab"]["image"] = IMAGE.into();
    })
    .await
    .unwrap();
    until_prepulls(&service, |answer| answer["images"][0]["nodes_with"] == 1).await;
    let name = {
        add_node(&service, "taken").await;
        let pod = pod_on(&service, "taken").await;
        // Another client's pod has the name when the service wants to create its own again.
        nodes(&service).await.delete("taken", &DeleteParams::default()).await.unwrap();
        until_no_pod(&service).await;
        pod.name_any()
    };
    let foreign = json!({ "metadata": { "name": name }, "spec": { "containers": [{ "name": "a", "image": "b" }], "nodeName": "elsewhere" } });
    let pods = pods(&service).await;
    pods.create(&PostParams::default(), &serde_json::from_value(foreign).unwrap()).await.unwrap();
    add_node(&service, "taken").await;
    add_node(&service, "zz-other").await;
    pod_on(&service, "zz-other").await;
    let report = until_prepulls(&service, |answer| answer["failed_count"] == 1).await;
    assert_eq!(report["failed"][0]["node"], "taken", "{report:#}");
    assert!(pods.get_opt(&name).await.unwrap().is_some(), "it is left alone");
}
