//! Actions of the owner of a workload while a lab is in it, each with its documented result.

use k8s_openapi::api::apps::v1::{DaemonSet, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::Client;
use wasmspawner_tests::events::Event;
use wasmspawner_tests::kubernetes::SKIPPED;
use wasmspawner_tests::waiting::until_some;

use super::shop::{Shop, deployment, server};
use crate::labs::{assert_permitted, gone};
use crate::site::{CLUSTER_WIDE, Site, until};

/// A lab in the workload of this name, with a user of its own.
struct LabIn<'a> {
    shop: &'a Shop<'a>,
    name: &'a str,
    client: Client,
    path: String,
    events: Vec<Event>,
}

impl<'a> LabIn<'a> {
    /// Makes the Deployment and puts the lab in.
    async fn deployment(shop: &'a Shop<'a>, name: &'a str, replicas: u32) -> Self {
        shop.deploy(name, replicas).await;
        let lab = Self::start(shop, "deployment", name).await;
        shop.rolled_out(name).await;
        lab
    }

    async fn start(shop: &'a Shop<'a>, kind: &str, name: &'a str) -> Self {
        let client = shop.service.user(name).unwrap();
        let events = shop.spawn(&client, name, kind, name).await;
        assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
        Self { shop, name, client, path: server(name, kind, &shop.namespace, name), events }
    }

    async fn json(&self) -> Value {
        self.client.lab(&self.path).await.unwrap().json().unwrap()
    }

    /// Waits until the lab has ended on its own, and can be started again. Returns the message to its user.
    async fn ended(&self) -> String {
        let events = self.client.next_operation(&self.path, &self.events).await.unwrap();
        gone(&self.shop.site.spawns(), &self.shop.record_of(self.name, "deployment", self.name)).await;
        until(async || self.client.lab(&self.path).await.unwrap().status == 404).await;
        events.into_iter().map(|event| event.data).collect::<Vec<_>>().join("\n")
    }

    async fn stop(&self, kind: &str) {
        assert_eq!(self.client.stop(&self.path).await.unwrap().status, 202);
        gone(&self.shop.site.spawns(), &self.shop.record_of(self.name, kind, self.name)).await;
    }

    async fn patch(&self, patch: Value) {
        let params = PatchParams { field_manager: Some("owner".to_owned()), ..PatchParams::default() };
        self.shop.deployments().patch(self.name, &params, &Patch::Strategic(patch)).await.unwrap();
    }

    async fn containers(&self) -> Vec<String> {
        let spec = self.shop.get(self.name).await.spec.unwrap().template.spec.unwrap();
        spec.containers.into_iter().map(|container| container.image.unwrap_or_default()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_an_owner_does_with_a_workload_its_lab_goes_on_or_ends_with_the_reason() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    let shop = Shop::open(&site, "delete").await;
    tokio::join!(
        replaced(&shop),
        synced(&shop),
        scaled(&shop),
        paused(&shop),
        undone(&shop),
        deleted(&shop),
        mounted(&shop),
        unreadable(&shop),
        of_other_kinds(&shop),
    );
    assert_permitted(&shop.service);
    site.leave().await;
}

/// Argo CD with `Replace=true` does this, and `kubectl replace`.
async fn replaced(shop: &Shop<'_>) {
    let lab = LabIn::deployment(shop, "replaced", 2).await;
    let original: k8s_openapi::api::apps::v1::Deployment =
        serde_json::from_value(deployment("replaced", 2)).unwrap();
    shop.deployments().replace("replaced", &PostParams::default(), &original).await.unwrap();
    let told = lab.ended().await;
    assert!(told.contains("Somebody has taken the lab out of deployment/"), "{told}");
    assert_eq!(lab.containers().await, ["web:1"]);
}

/// Argo CD does this at each sync, and `kubectl apply --server-side`: the lab stays, in pods of the new version.
async fn synced(shop: &Shop<'_>) {
    let lab = LabIn::deployment(shop, "synced", 2).await;
    let mut next = deployment("synced", 2);
    next["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2".into();
    let params = PatchParams::apply("argocd").force();
    shop.deployments().patch("synced", &params, &Patch::Apply(next)).await.unwrap();
    until(async || lab.json().await["reason"] == "Moved").await;
    assert_eq!(lab.json().await["status"], "running");
    assert_eq!(lab.containers().await.len(), 2);
    // Somebody changes the lab's own container, too. It is still removed with the lab.
    let spec = shop.get("synced").await.spec.unwrap().template.spec.unwrap();
    let of_lab = spec.containers.iter().find(|container| container.name.starts_with("lab-")).unwrap();
    lab.patch(json!({ "spec": { "template": { "spec": { "containers": [
        { "name": of_lab.name, "image": "changed:1" },
    ] } } } }))
    .await;
    lab.stop("deployment").await;
    assert_eq!(lab.containers().await, ["web:2"]);
}

/// An autoscaler does this. Without pods there is no lab, even when there are pods again.
async fn scaled(shop: &Shop<'_>) {
    let lab = LabIn::deployment(shop, "shrunk", 3).await;
    for replicas in [1, 3] {
        lab.patch(json!({ "spec": { "replicas": replicas } })).await;
        shop.rolled_out("shrunk").await;
        assert_eq!(lab.json().await["status"], "running");
    }
    forge(shop, &lab).await;
    lab.patch(json!({ "spec": { "replicas": 0 } })).await;
    let told = lab.ended().await;
    assert!(told.contains("was scaled to zero"), "{told}");
    lab.patch(json!({ "spec": { "replicas": 1 } })).await;
    shop.rolled_out("shrunk").await;
    assert_eq!(lab.containers().await, ["web:1"]);
}

/// An attacker who may create pods in the namespace makes one with the labels of the lab. The attacker also makes a
/// revision for it, with the name of one of the workload's and a claim to be one, until the workload's controller
/// releases it.
async fn forge(shop: &Shop<'_>, lab: &LabIn<'_>) {
    let pods: Api<Pod> = Api::namespaced(shop.site.cluster.client.clone(), &shop.namespace);
    let revisions: Api<ReplicaSet> = Api::namespaced(shop.site.cluster.client.clone(), &shop.namespace);
    let pod = shop.pods(lab.name).await.pop().unwrap();
    let (mut labels, mut spec) = (pod.metadata.labels.unwrap(), pod.spec.unwrap());
    labels.remove("app");
    labels.insert("pod-template-hash".to_owned(), "forged".to_owned());
    spec.node_name = None;
    let name = format!("{}-forged", lab.name);
    let uid = shop.get(lab.name).await.metadata.uid;
    let owner = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": lab.name, "uid": uid, "controller": true });
    let revision = json!({
        "metadata": { "name": name, "labels": labels, "ownerReferences": [owner] },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "pod-template-hash": "forged" } },
            "template": { "metadata": { "labels": labels }, "spec": spec },
        },
    });
    revisions.create(&PostParams::default(), &serde_json::from_value(revision).unwrap()).await.unwrap();
    let forged = ListParams::default().labels("pod-template-hash=forged");
    let address = until_some(async || {
        let pod = pods.list(&forged).await.unwrap().items.pop()?;
        let status = pod.status?;
        let is_ready = |one: &PodCondition| one.type_ == "Ready" && one.status == "True";
        status.conditions.iter().flatten().any(is_ready).then_some(status.pod_ip?)
    })
    .await;
    until(async || {
        revisions.get(&name).await.unwrap().metadata.owner_references.is_none_or(|left| left.is_empty())
    })
    .await;
    // The lab's own pod is deleted, and the forged one is the newest that is ready.
    for pod in shop.pods(lab.name).await {
        pods.delete(&pod.metadata.name.unwrap(), &DeleteParams::default()).await.unwrap();
    }
    shop.rolled_out(lab.name).await;
    let at = |address: &str| format!("//{address}:");
    let own: Vec<String> =
        shop.pods(lab.name).await.into_iter().filter_map(|pod| pod.status?.pod_ip).collect();
    until(async || {
        let url = lab.json().await["url"].to_string();
        assert!(!url.contains(&at(&address)), "{url}");
        own.iter().any(|own| url.contains(&at(own)))
    })
    .await;
    revisions.delete(&name, &DeleteParams::default()).await.unwrap();
}

/// A paused workload keeps its pods. The stop reports this, and continues when the owner resumes the workload.
async fn paused(shop: &Shop<'_>) {
    let lab = LabIn::deployment(shop, "paused", 1).await;
    lab.patch(json!({ "spec": { "paused": true } })).await;
    assert_eq!(lab.client.stop(&lab.path).await.unwrap().status, 202);
    until(async || lab.containers().await == ["web:1"]).await;
    let other = shop.service.user("grace").unwrap();
    let body = json!({ "user_string": shop.user_string("grace", "deployment", "paused") });
    let refused = other.spawn_with("grace", &body).await.unwrap();
    assert_eq!(refused.problem().unwrap(), "409 workload_refused", "{refused:?}");
    assert_eq!(lab.json().await["status"], "terminating");
    lab.patch(json!({ "spec": { "paused": false } })).await;
    gone(&shop.site.spawns(), &shop.record_of("paused", "deployment", "paused")).await;
}

/// `kubectl rollout undo` writes the template of an earlier revision.
async fn undone(shop: &Shop<'_>) {
    let before = shop.deploy("undone", 1).await.spec.unwrap().template;
    let lab = LabIn::start(shop, "deployment", "undone").await;
    let with_lab = shop.get("undone").await.spec.unwrap().template;
    let write = async |template: &Value| {
        let mut template = template.clone();
        template["$patch"] = "replace".into();
        let patch = Patch::Strategic(json!({ "spec": { "template": template } }));
        shop.deployments().patch("undone", &PatchParams::default(), &patch).await.unwrap();
    };
    let (before, with_lab) = (serde_json::to_value(before).unwrap(), serde_json::to_value(with_lab).unwrap());
    write(&before).await;
    let told = lab.ended().await;
    assert!(told.contains("it was rolled back"), "{told}");
    // The lab is started again, and somebody writes the whole template. A stop still takes the lab out.
    let lab = LabIn::start(shop, "deployment", "undone").await;
    write(&before).await;
    write(&with_lab).await;
    let told = lab.ended().await;
    assert!(told.contains("it was rolled back"), "{told}");
    let left = lab.containers().await;
    assert!(left.len() <= 2, "{left:?}");
}

async fn deleted(shop: &Shop<'_>) {
    let lab = LabIn::deployment(shop, "deleted", 1).await;
    shop.deployments().delete("deleted", &DeleteParams::background()).await.unwrap();
    let told = lab.ended().await;
    assert!(told.contains("was deleted, and the lab with it"), "{told}");
}

/// A container of the owner mounts a volume of the lab. The API server lets nobody remove such a volume. The lab still
/// ends, and the volume belongs to the owner from then on.
async fn mounted(shop: &Shop<'_>) {
    let lab = LabIn::deployment(shop, "mounted", 1).await;
    let volumes = async || {
        let spec = shop.get("mounted").await.spec.unwrap().template.spec.unwrap();
        spec.volumes.unwrap_or_default().into_iter().map(|volume| volume.name).collect::<Vec<_>>()
    };
    let of_lab = volumes().await.pop().unwrap();
    let mounts = |patch: Value| json!({ "spec": { "template": { "spec": { "containers": [{ "name": "web", "volumeMounts": [patch] }] } } } });
    lab.patch(mounts(json!({ "name": of_lab, "mountPath": "/of-the-lab" }))).await;
    lab.stop("deployment").await;
    assert_eq!(lab.containers().await, ["web:1"]);
    assert_eq!(volumes().await, std::slice::from_ref(&of_lab));
    assert_eq!(shop.get("mounted").await.spec.unwrap().template.metadata.unwrap().labels.unwrap().len(), 1);
    // Another lab comes and goes, both while the owner still mounts the volume and after that.
    LabIn::start(shop, "deployment", "mounted").await.stop("deployment").await;
    assert_eq!(volumes().await, std::slice::from_ref(&of_lab));
    lab.patch(mounts(json!({ "$patch": "delete", "mountPath": "/of-the-lab" }))).await;
    LabIn::start(shop, "deployment", "mounted").await.stop("deployment").await;
    assert_eq!(lab.containers().await, ["web:1"]);
}

/// Somebody writes a time into the workload that no library can read. The lab can still be stopped.
async fn unreadable(shop: &Shop<'_>) {
    let lab = LabIn::deployment(shop, "late", 1).await;
    let send = async |method: &str, kind: &str, body: Value| {
        let path = format!("/apis/apps/v1/namespaces/{}/deployments/late", shop.namespace);
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.body(serde_json::to_vec(&body).unwrap()).unwrap();
        shop.site.cluster.client.request::<Value>(request).await.unwrap()
    };
    let late = json!([{ "op": "replace", "path": "/metadata/managedFields/0/time", "value": "9999-12-31T23:59:59Z" }]);
    send("PATCH", "application/json-patch+json", late).await;
    lab.stop("deployment").await;
    let left = send("GET", "application/json", json!({})).await;
    assert_eq!(left["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 1, "{left:#}");
    send("PATCH", "application/merge-patch+json", json!({ "metadata": { "managedFields": [{}] } })).await;
}

/// A `StatefulSet` and a `DaemonSet`.
async fn of_other_kinds(shop: &Shop<'_>) {
    let client = shop.site.cluster.client.clone();
    let mut set = deployment("set", 2);
    (set["kind"], set["spec"]["serviceName"]) = ("StatefulSet".into(), "set".into());
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), &shop.namespace);
    sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.unwrap();
    let template = sets.get("set").await.unwrap().spec.unwrap().template;
    let lab = LabIn::start(shop, "statefulset", "set").await;
    lab.stop("statefulset").await;
    assert_eq!(sets.get("set").await.unwrap().spec.unwrap().template, template);

    let mut agent = deployment("agent", 1);
    agent["kind"] = "DaemonSet".into();
    agent["spec"].as_object_mut().unwrap().remove("replicas");
    // No controller removes the initial taint of the test's node.
    agent["spec"]["template"]["spec"]["tolerations"] = json!([{ "operator": "Exists" }]);
    let agents: Api<DaemonSet> = Api::namespaced(client, &shop.namespace);
    agents.create(&PostParams::default(), &serde_json::from_value(agent).unwrap()).await.unwrap();
    let template = agents.get("agent").await.unwrap().spec.unwrap().template;
    let lab = LabIn::start(shop, "daemonset", "agent").await;
    lab.stop("daemonset").await;
    assert_eq!(agents.get("agent").await.unwrap().spec.unwrap().template, template);
}
