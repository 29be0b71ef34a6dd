//! A cluster, a proxy for it, and a service that uses the proxy.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use wasmspawner_core::manifest::{KINDS_DELETED_BY_LABEL, ObjectKind};
use wasmspawner_core::names::labels::SPAWN_LABEL;
use wasmspawner_core::record;
use wasmspawner_embedded::apiserver::{ApiServer, Options};
use wasmspawner_embedded::kubelet::{Kubelet, KubeletOptions, Runtime, SimulatedOptions};
use wasmspawner_tests::api;
use wasmspawner_tests::kubernetes::{Cluster, records, remove_definition};
use wasmspawner_tests::proxy::Proxy;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::some_within;

use crate::BINARY;

/// Time limit of everything that a test waits for.
pub(crate) const BOUND: Duration = Duration::from_mins(2);

/// The node that runs the pods.
const NODE: &str = "wasmspawner-faults";

/// A service on a cluster, with a proxy between them.
pub(crate) struct Setup {
    pub(crate) service: Service,
    pub(crate) proxy: Proxy,
    /// A client that does not use the proxy.
    pub(crate) cluster: Client,
    /// The service's own namespace.
    home: String,
    /// The prefix of the names of labs' namespaces.
    prefix: String,
    /// True if namespaces are retained.
    retains: bool,
    kubelet: (DropGuard, JoinHandle<()>),
}

impl Setup {
    /// Starts a one-machine cluster in this process, a proxy and a service.
    pub(crate) async fn start(change: impl FnOnce(&mut Value)) -> Self {
        let cluster = ApiServer::open(Options::default()).unwrap().client();
        make::<Namespace>(Api::all(cluster.clone()), json!({ "metadata": { "name": "wasmspawner" } })).await;
        Self::on(cluster, "wasmspawner".to_owned(), "nublado-".to_owned(), change).await
    }

    /// Starts a proxy and a service with the Kubernetes of `TEST_KUBECONFIG`.
    pub(crate) async fn start_on(cluster: &Cluster) -> Self {
        let (home, prefix) = (cluster.namespace.clone(), format!("{}-", cluster.namespace));
        let names = json!({ "namespace": format!("{prefix}{{user_server}}") });
        Self::on(cluster.client.clone(), home, prefix, |config| config["names"] = names).await
    }

    async fn on(cluster: Client, home: String, prefix: String, change: impl FnOnce(&mut Value)) -> Self {
        make::<CustomResourceDefinition>(Api::all(cluster.clone()), record::definition()).await;
        let kubelet = kubelet(&cluster);
        let mut retains = false;
        let (service, proxy) = process(&cluster, &home, |config| {
            change(config);
            retains = config["kubernetes"]["namespaces"] == "retain";
        })
        .await;
        let mut setup = Self { service, proxy, cluster, home, prefix, retains, kubelet };
        eventually("records are served", async || setup.records().list(&ListParams::default()).await.ok())
            .await;
        setup.service.run().await.unwrap();
        setup
    }

    /// Prepares another process of the same installation, with a proxy of its own.
    pub(crate) async fn another(&self, change: impl FnOnce(&mut Value)) -> (Service, Proxy) {
        process(&self.cluster, &self.home, change).await
    }

    /// Deletes what the test created in a shared cluster.
    pub(crate) async fn leave(self) {
        drop(self.service);
        drop(self.kubelet.0);
        self.kubelet.1.await.unwrap();
        remove_definition(self.cluster.clone()).await.unwrap();
        Api::<Node>::all(self.cluster).delete(NODE, &DeleteParams::default()).await.unwrap();
    }

    /// The namespace of a user's lab.
    pub(crate) fn namespace_of(&self, user: &str) -> String {
        format!("{}{user}", self.prefix)
    }

    pub(crate) fn records(&self) -> Api<DynamicObject> {
        records(self.cluster.clone(), &self.home)
    }

    pub(crate) fn namespaces(&self) -> Api<Namespace> {
        Api::all(self.cluster.clone())
    }

    /// The pods of a user's lab.
    pub(crate) fn pods_of(&self, user: &str) -> Api<Pod> {
        Api::namespaced(self.cluster.clone(), &self.namespace_of(user))
    }

    /// The remaining objects of labs whose usernames begin with `of`: records, the labs' objects, and their namespaces
    /// unless those are retained.
    pub(crate) async fn left(&self, of: &str) -> Vec<String> {
        let name = |kind: &str, name: Option<String>| format!("{kind} {}", name.unwrap_or_default());
        let records = self.records().list(&ListParams::default()).await.unwrap();
        let mut left: Vec<String> =
            records.into_iter().map(|record| name("Spawn", record.metadata.name)).collect();
        for kind in kinds() {
            let objects = self.objects(None, &kind).await.into_iter();
            left.extend(objects.map(|object| name(&format!("{} in", kind.kind), object.metadata.namespace)));
        }
        if !self.retains {
            let namespaces = self.namespaces().list(&ListParams::default()).await.unwrap();
            left.extend(namespaces.into_iter().map(|namespace| name("Namespace", namespace.metadata.name)));
        }
        left.retain(|name| name.contains(&format!("-{of}")));
        left
    }

    /// Waits until no object of labs whose usernames begin with `of` is left.
    pub(crate) async fn nothing_is_left(&self, of: &str, case: &str) {
        let mut left = Vec::new();
        let mut again = tokio::time::interval(Duration::from_millis(50));
        let waiting = async {
            loop {
                again.tick().await;
                left = self.left(of).await;
                if left.is_empty() {
                    return;
                }
            }
        };
        let waited = tokio::time::timeout(BOUND, waiting).await;
        assert!(waited.is_ok(), "{case}: {left:?}");
    }

    /// The number of objects of a user's lab, including the namespace.
    pub(crate) async fn count_objects(&self, user: &str) -> usize {
        let namespace = self.namespace_of(user);
        let mut objects = 1;
        for kind in kinds() {
            objects += self.objects(Some(&namespace), &kind).await.len();
        }
        objects
    }

    /// The objects of a kind that belong to labs.
    async fn objects(&self, namespace: Option<&str>, kind: &ApiResource) -> Vec<DynamicObject> {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.cluster.clone(), namespace, kind),
            None => Api::all_with(self.cluster.clone(), kind),
        };
        api.list(&ListParams::default().labels(SPAWN_LABEL)).await.unwrap().items
    }
}

/// Runs the pods of the cluster, in simulation.
fn kubelet(cluster: &Client) -> (DropGuard, JoinHandle<()>) {
    let pods = SimulatedOptions { ready: Duration::from_millis(100), ..SimulatedOptions::default() };
    let pods = KubeletOptions::new(NODE, Runtime::Simulated(pods));
    let stop = CancellationToken::new();
    let kubelet = tokio::spawn(Kubelet::new(cluster.clone(), pods).unwrap().run(stop.clone()));
    (stop.drop_guard(), kubelet)
}

/// Prepares a service that reaches its cluster through a proxy. Its namespace is `home`.
async fn process(cluster: &Client, home: &str, change: impl FnOnce(&mut Value)) -> (Service, Proxy) {
    let proxy = Proxy::start(cluster.clone()).await.unwrap();
    let service = Service::prepare(BINARY, |_| {}).unwrap();
    let kubeconfig = service.folder().join("kubeconfig");
    std::fs::write(&kubeconfig, proxy.kubeconfig()).unwrap();
    service
        .reconfigure(|config| {
            config.as_object_mut().unwrap().remove("embedded");
            config["kubernetes"] = json!({
                "kubeconfig": kubeconfig, "namespace": home, "instance": home, "delete_namespaces_after": "500ms",
            });
            // Tests repeat refused requests without pauses.
            config["limits"] = json!({ "per_user": { "spawns_per_minute": 1_000_000 } });
            change(config);
        })
        .unwrap();
    (service, proxy)
}

/// The kinds of objects that a lab may have in its namespace.
fn kinds() -> impl Iterator<Item = ApiResource> {
    let of = |kind: &ObjectKind| {
        let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
        ApiResource::from_gvk_with_plural(&gvk, kind.plural)
    };
    KINDS_DELETED_BY_LABEL.iter().map(of).chain([ApiResource::erase::<Pod>(&())])
}

async fn make<K>(api: Api<K>, object: Value)
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Calls `ask` until it returns a value.
pub(crate) async fn eventually<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    let answer = some_within(BOUND, ask).await;
    assert!(answer.is_some(), "it did not come about: {what}");
    answer.unwrap()
}

/// The lab as the API shows it; null if there is none.
pub(crate) async fn lab(client: &api::Client, lab: &str) -> Value {
    let answer = client.lab(lab).await.unwrap();
    if answer.status == 404 { Value::Null } else { answer.json().unwrap() }
}

/// Starts a lab as soon as the service has noticed that its cluster is reachable. Waits until the lab is ready.
pub(crate) async fn start(client: &api::Client, name: &str) {
    eventually(&format!("the spawn of {name} is accepted"), async || {
        let answer = client.spawn(name).await.unwrap();
        assert!(matches!(answer.status, 303 | 503), "{name}: {answer:?}");
        (answer.status == 303).then_some(())
    })
    .await;
    let events = client.events(name).await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{name}: {events:#?}");
}

/// Stops a lab and waits until it is gone. Repeats a request that was refused with 503.
pub(crate) async fn stop(client: &api::Client, name: &str) {
    eventually(&format!("the stop of {name} is accepted"), async || {
        let status = client.stop(name).await.unwrap().status;
        assert!(matches!(status, 202 | 404 | 503), "{name}: {status}");
        (status != 503).then_some(())
    })
    .await;
    eventually(&format!("{name} is gone"), async || lab(client, name).await.is_null().then_some(())).await;
}
