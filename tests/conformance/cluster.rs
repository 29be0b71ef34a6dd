//! A cluster, and a namespace of one's own in it.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::env;
use std::fmt::Debug;
use std::fs::File;
use std::time::Duration;
use wasmspawner_embedded::apiserver::{ApiServer, Options};

/// The longest time that a test waits for something to happen.
const BOUND: Duration = Duration::from_mins(1);

/// A client, and a namespace that nobody else uses.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// Keeps other tests out of a real cluster: some of them bring a node, which runs all pods.
    _lock: Option<File>,
}

impl Cluster {
    /// An embedded API server that lasts as long as the test.
    pub(crate) async fn embedded() -> Self {
        let server = ApiServer::open(Options::default()).unwrap();
        Self::enter(server.client(), None).await
    }

    /// The cluster that `TEST_KUBECONFIG` names. Without the variable, prints `skipped` and returns None.
    pub(crate) async fn real() -> Option<Self> {
        let Some(file) = env::var_os("TEST_KUBECONFIG") else {
            println!("skipped: TEST_KUBECONFIG is not set; `make test` starts a control plane");
            return None;
        };
        let lock = File::open(&file).unwrap();
        let lock = tokio::task::spawn_blocking(|| lock.lock().map(|()| lock)).await.unwrap().unwrap();
        let kubeconfig = Kubeconfig::read_from(file).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let cluster = Self::enter(Client::try_from(config.unwrap()).unwrap(), Some(lock)).await;
        // Pods are admitted only when their account is there.
        let accounts: Api<ServiceAccount> = cluster.api();
        eventually("the default account is there", async || {
            accounts.get_opt("default").await.unwrap().is_some()
        })
        .await;
        Some(cluster)
    }

    async fn enter(client: Client, lock: Option<File>) -> Self {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = object(json!({"metadata": {"generateName": "conformance-"}}));
        let namespace = namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        Self { client, namespace: namespace.metadata.name.unwrap(), _lock: lock }
    }

    /// Deletes the namespace.
    pub(crate) async fn leave(self) {
        let namespaces: Api<Namespace> = Api::all(self.client);
        namespaces.delete(&self.namespace, &DeleteParams::default()).await.unwrap();
    }

    /// Objects in the namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A request as it is, for what the client does not do.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> Result<Value, Status> {
        let request = http::Request::builder()
            .method(method)
            .uri(path.replace("{ns}", &self.namespace))
            .header("content-type", kind)
            .body(body.to_string().into_bytes())
            .unwrap();
        self.client.request::<Value>(request).await.map_err(status)
    }
}

/// An object from its JSON.
pub(crate) fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// A `ConfigMap` with one entry.
pub(crate) fn config_map<K: DeserializeOwned>(name: &str, value: &str) -> K {
    object(json!({"metadata": {"name": name}, "data": {"k": value}}))
}

/// A pod with one container.
pub(crate) fn pod<K: DeserializeOwned>(name: &str) -> K {
    object(
        json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "registry.example/i:1"}]}}),
    )
}

/// The `Status` of a failure.
pub(crate) fn status(error: kube::Error) -> Status {
    match error {
        kube::Error::Api(status) => *status,
        other => panic!("not an answer of the API: {other:?}"),
    }
}

/// The `Status` of what has to fail.
pub(crate) fn refused<T: Debug>(result: kube::Result<T>) -> Status {
    status(result.unwrap_err())
}

/// Waits until the condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    let waiting = async {
        while !holds().await {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(BOUND, waiting).await.unwrap_or_else(|_| panic!("not within {BOUND:?}: {what}"));
}

/// The result of `future`, which must come within `BOUND`.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, future).await.unwrap_or_else(|_| panic!("not within {BOUND:?}: {what}"))
}
