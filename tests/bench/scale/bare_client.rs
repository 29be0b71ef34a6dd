//! The reference: a client that only creates the objects of labs and waits for their pods.

use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use futures::TryStreamExt as _;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label of this client's objects, so that the service does not treat them as its own.
const OURS: &str = "app.kubernetes.io/managed-by=bare-client";

/// Creates copies of a lab's objects.
pub(crate) struct BareClient {
    client: Client,
    user: String,
    /// The lab's objects in the order in which the service creates them: the namespace first, the pod last.
    shape: Vec<(ApiResource, Value)>,
}

impl BareClient {
    /// Copies the objects of a running lab. The username must not occur in them for another reason.
    pub(crate) async fn like(client: Client, user: &str) -> anyhow::Result<Self> {
        let selector = format!("wasmspawner.io/user={user}");
        let mut shape = Vec::new();
        for kind in [
            ApiResource::erase::<Namespace>(&()),
            ApiResource::erase::<ServiceAccount>(&()),
            ApiResource::erase::<ConfigMap>(&()),
            ApiResource::erase::<Secret>(&()),
            ApiResource::erase::<NetworkPolicy>(&()),
            ApiResource::erase::<Pod>(&()),
        ] {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
            for object in api.list(&ListParams::default().labels(&selector)).await? {
                shape.push((kind.clone(), as_written(&kind, serde_json::to_value(object)?)));
            }
        }
        let kinds: Vec<&str> = shape.iter().map(|(kind, _)| kind.kind.as_str()).collect();
        let expected =
            ["Namespace", "ServiceAccount", "ConfigMap", "ConfigMap", "Secret", "NetworkPolicy", "Pod"];
        anyhow::ensure!(kinds == expected, "a lab has other objects now: {kinds:?}");
        Ok(Self { client, user: user.to_owned(), shape })
    }

    /// Creates the objects of this number of labs at once and waits for all pods. Returns the time that took.
    pub(crate) async fn run(&self, labs: usize) -> anyhow::Result<Duration> {
        let copies = (0..labs).map(|number| self.copy(number)).collect::<anyhow::Result<Vec<_>>>()?;
        let pods: Api<Pod> = Api::all(self.client.clone());
        let version = pods.list(&ListParams::default().labels(OURS)).await?.metadata.resource_version;
        let begun = std::time::Instant::now();
        let ready = tokio::spawn(all_ready(pods, version.unwrap_or_default(), labs));
        let mut creating: JoinSet<_> =
            copies.into_iter().map(|objects| create(self.client.clone(), objects)).collect();
        while let Some(created) = creating.join_next().await {
            created??;
        }
        ready.await??;
        Ok(begun.elapsed())
    }

    /// Deletes pods and namespaces, and waits until no pod is left. Returns the time that took.
    pub(crate) async fn stop(&self) -> anyhow::Result<Duration> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let pods: Api<Pod> = Api::all(self.client.clone());
        let ours = ListParams::default().labels(OURS);
        let listed = pods.list(&ours).await?;
        let version = listed.metadata.resource_version.unwrap_or_default();
        let places: Vec<(String, String)> = listed
            .items
            .iter()
            .map(|pod| Ok((pod.namespace().context("a pod without namespace")?, pod.name_any())))
            .collect::<anyhow::Result<_>>()?;
        let begun = std::time::Instant::now();
        let gone = tokio::spawn(all_gone(pods, version, places.len()));
        try_join_all(places.iter().map(async |(namespace, name)| {
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
            pods.delete(name, &DeleteParams::default()).await.map(drop)?;
            namespaces.delete(namespace, &DeleteParams::background()).await.map(drop)
        }))
        .await?;
        gone.await??;
        let took = begun.elapsed();
        let mut again = tokio::time::interval(Duration::from_millis(100));
        while !namespaces.list(&ours).await?.items.is_empty() {
            again.tick().await;
        }
        Ok(took)
    }

    fn copy(&self, number: usize) -> anyhow::Result<Vec<(ApiResource, DynamicObject)>> {
        let renamed = |(kind, object): &(ApiResource, Value)| {
            let text = object.to_string().replace(&self.user, &format!("bare{number}"));
            Ok((kind.clone(), serde_json::from_str(&text)?))
        };
        self.shape.iter().map(renamed).collect()
    }
}

/// An object as its creator wrote it, without the fields that the cluster added.
fn as_written(kind: &ApiResource, mut object: Value) -> Value {
    let mut labels = object["metadata"]["labels"].take();
    labels[MANAGED_BY] = json!("bare-client");
    object["metadata"] = json!({
        "name": object["metadata"]["name"],
        "namespace": object["metadata"]["namespace"],
        "annotations": object["metadata"]["annotations"],
        "labels": labels,
    });
    object["apiVersion"] = json!(kind.api_version);
    object["kind"] = json!(kind.kind);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        if kind.kind == "Namespace" {
            fields.remove("spec");
        }
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("nodeName");
    }
    object
}

/// Creates the namespace, then all other objects in parallel, then the pod.
async fn create(client: Client, objects: Vec<(ApiResource, DynamicObject)>) -> anyhow::Result<()> {
    let one = async |(kind, object): &(ApiResource, DynamicObject)| {
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, kind),
            None => Api::all_with(client.clone(), kind),
        };
        match api.create(&PostParams::default(), object).await {
            // The client itself repeats a request whose connection broke after the API server had carried it out.
            Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(()),
            created => created.map(drop),
        }
    };
    let [namespace, rest @ .., pod] = objects.as_slice() else { anyhow::bail!("no objects") };
    one(namespace).await?;
    try_join_all(rest.iter().map(one)).await?;
    Ok(one(pod).await?)
}

/// Watches until this number of pods is ready.
async fn all_ready(pods: Api<Pod>, version: String, labs: usize) -> anyhow::Result<()> {
    let mut ready = HashSet::new();
    watch_until(&pods, version, |event| {
        if let WatchEvent::Added(pod) | WatchEvent::Modified(pod) = event
            && is_ready(pod)
        {
            ready.insert(pod.namespace());
        }
        ready.len() == labs
    })
    .await
}

/// Watches until this number of pods is gone.
async fn all_gone(pods: Api<Pod>, version: String, labs: usize) -> anyhow::Result<()> {
    let mut left = labs;
    watch_until(&pods, version, |event| {
        left -= usize::from(matches!(event, WatchEvent::Deleted(_)));
        left == 0
    })
    .await
}

/// Watches until `enough` events have come. The API server may end a watch at any time; it is then resumed.
async fn watch_until(
    pods: &Api<Pod>,
    mut version: String,
    mut enough: impl FnMut(&WatchEvent<Pod>) -> bool,
) -> anyhow::Result<()> {
    loop {
        let mut changes = pin!(pods.watch(&WatchParams::default().labels(OURS), &version).await?);
        while let Some(event) = changes.try_next().await? {
            match &event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => {
                    version = pod.resource_version().context("a pod without a version")?;
                }
                WatchEvent::Error(error) => anyhow::bail!("the watch failed: {error:?}"),
                WatchEvent::Bookmark(_) => {}
            }
            if enough(&event) {
                return Ok(());
            }
        }
    }
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
