//! Nodes pull images in advance, on a real API server and with exactly the permissions for it.

use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wasmspawner_core::images::{Pull, PullPodTemplate};
use wasmspawner_core::names::LabelValue;
use wasmspawner_embedded::kubelet::{Kubelet, KubeletOptions, Runtime, SimulatedOptions};
use wasmspawner_tests::kubernetes::SKIPPED;
use wasmspawner_tests::service::Service;

use crate::adversaries::stolen_token::{Intruder, assert_forbidden};
use crate::labs::{assert_permitted, service_with};
use crate::site::{CLUSTER_WIDE, NODE, NODES, ONE_NAMESPACE, PREPULL, Site, until};

const IMAGE: &str = "quay.io/site/lab:1";
const SECOND: &str = "wasmspawner-second";

#[tokio::test(flavor = "multi_thread")]
async fn nodes_pull_images_with_the_permissions_for_it_and_under_the_admission_policy() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.apply(NODES).await;
    site.apply(PREPULL).await;
    site.install_definition().await;
    site.install_policy().await;
    let namespaces: Api<Namespace> = Api::all(site.cluster.client.clone());
    let restricted =
        json!({ "metadata": { "labels": { "pod-security.kubernetes.io/enforce": "restricted" } } });
    namespaces.patch(site.name(), &PatchParams::default(), &Patch::Merge(restricted)).await.unwrap();
    let labs = site.namespace("labs").await;
    let mut service = service_with(&site, "single", &labs, |config| {
        config["images"] = json!({ "nodes": {}, "prepull": { "images": [{ "reference": IMAGE }] } });
    });
    service.run().await.unwrap();
    let nodes: Api<Node> = Api::all(site.cluster.client.clone());
    make_ready(&nodes, NODE).await;
    until(async || nodes_with(&service).await == 1).await;

    let _ = nodes.delete(SECOND, &DeleteParams::default()).await;
    let options = KubeletOptions::new(SECOND, Runtime::Simulated(SimulatedOptions::default()));
    let kubelet = Kubelet::new(site.cluster.client.clone(), options).unwrap();
    let stop = CancellationToken::new();
    let kubelet = tokio::spawn(kubelet.run(stop.clone()));
    make_ready(&nodes, SECOND).await;
    until(async || nodes_with(&service).await == 2).await;

    let pods: Api<Pod> = Api::namespaced(site.cluster.client.clone(), site.name());
    until(async || pods.list(&ListParams::default()).await.unwrap().items.is_empty()).await;
    assert_permitted(&service);
    stop.cancel();
    kubelet.await.unwrap();
    nodes.delete(SECOND, &DeleteParams::default()).await.unwrap();
    site.leave().await;
}

/// Removes the initial taint of a node of a real cluster, because the controller that does so does not run here.
async fn make_ready(nodes: &Api<Node>, name: &str) {
    let taints = async || nodes.get_opt(name).await.unwrap()?.spec?.taints;
    until(async || taints().await.is_some_and(|taints| taints[0].key == "node.kubernetes.io/not-ready"))
        .await;
    let none = Patch::Merge(json!({ "spec": { "taints": null } }));
    nodes.patch(name, &PatchParams::default(), &none).await.unwrap();
}

/// The number of nodes that have the image, as reported by the service.
async fn nodes_with(service: &Service) -> u64 {
    let answer = service.admin().unwrap().get("/spawner/v1/prepulls").await.unwrap().json().unwrap();
    answer["images"][0]["nodes_with"].as_u64().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admission_policy_allows_only_pods_that_pull_in_the_service_s_namespace() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.apply(PREPULL).await;
    site.install_policy().await;
    let stolen = Intruder::under_the_policy(&site).await;
    let pods: Api<Pod> = stolen.of(site.name());
    let template = PullPodTemplate {
        instance: LabelValue::parse(site.name()).unwrap(),
        owner: None,
        pull_secret: None,
        time_limit: jiff::SignedDuration::from_mins(1),
    };
    let pull = Pull { node: "elsewhere".to_owned(), image: IMAGE.parse().unwrap() };
    let good = serde_json::to_value(template.pod(&pull)).unwrap();
    let create = async |pod: &Value| {
        let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
        pods.create(&PostParams { dry_run: true, ..PostParams::default() }, &pod).await
    };
    create(&good).await.expect("what the service does is allowed");
    for (pointer, value) in [
        ("/metadata/labels", json!({ "wasmspawner.io/prepull": "other" })),
        ("/metadata/labels", json!({})),
        (
            "/metadata/labels",
            json!({ "wasmspawner.io/prepull": site.name(), "hub.jupyter.org/network-access-hub": "true" }),
        ),
        ("/spec/nodeName", Value::Null),
        ("/spec/restartPolicy", json!("Always")),
        ("/spec/activeDeadlineSeconds", Value::Null),
        ("/spec/priorityClassName", json!("system-node-critical")),
        ("/spec/securityContext/runAsNonRoot", Value::Null),
        ("/spec/containers/0/securityContext/runAsUser", json!(0)),
        ("/spec/containers/0/securityContext/runAsNonRoot", json!(false)),
        ("/spec/containers/0/securityContext/capabilities/drop", json!(["NET_RAW"])),
        ("/spec/automountServiceAccountToken", json!(true)),
        ("/spec/automountServiceAccountToken", Value::Null),
        ("/spec/volumes", json!([{ "name": "s", "secret": { "secretName": "token" } }])),
        ("/spec/hostNetwork", json!(true)),
        ("/spec/hostPID", json!(true)),
        ("/spec/initContainers", json!([{ "name": "i", "image": "x" }])),
        ("/spec/containers/0/command", Value::Null),
        ("/spec/containers/0/command", json!(["sh"])),
        ("/spec/containers/0/args", json!(["-c"])),
        ("/spec/containers/0/env", json!([{ "name": "A", "value": "b" }])),
        ("/spec/containers/0/envFrom", json!([{ "secretRef": { "name": "token" } }])),
        ("/spec/containers/0/securityContext/allowPrivilegeEscalation", Value::Null),
        ("/spec/containers/0/securityContext/capabilities", json!({ "add": ["SYS_ADMIN"] })),
        ("/spec/containers/0/lifecycle", json!({ "postStart": { "exec": { "command": ["sh"] } } })),
        (
            "/spec/containers/0/livenessProbe",
            json!({ "httpGet": { "host": "10.0.0.1", "path": "/", "port": 80 } }),
        ),
        ("/spec/serviceAccountName", json!("wasmspawner")),
        ("/spec/containers/0/ports", json!([{ "containerPort": 80, "hostPort": 80 }])),
    ] {
        let mut pod = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        pod.pointer_mut(parent).unwrap()[key] = value.clone();
        stolen.refused(create(&pod).await, &format!("{pointer}: {value}"));
    }
    let mut two = good.clone();
    let container = json!({ "name": "more", "image": "x", "command": ["true"] });
    two["spec"]["containers"].as_array_mut().unwrap().push(container);
    stolen.refused(create(&two).await, "a second container");

    let admins: Api<Pod> = Api::namespaced(site.cluster.client.clone(), site.name());
    let mut hub = good.clone();
    hub["metadata"] = json!({ "name": "hub", "labels": { "component": "hub" } });
    admins.create(&PostParams::default(), &serde_json::from_value(hub).unwrap()).await.unwrap();
    stolen.refused(pods.delete("hub", &DeleteParams::default()).await.map(drop), "delete another pod");
    let take = json!({ "metadata": { "labels": { "wasmspawner.io/prepull": site.name() } } });
    let patched = pods.patch("hub", &PatchParams::default(), &Patch::Merge(take)).await;
    assert_forbidden(&patched, "take it over");
    site.leave().await;
}
