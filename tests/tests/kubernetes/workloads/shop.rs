//! A namespace with an owner's web services, into which labs may be put.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::api::Client;
use wasmspawner_tests::events::Event;
use wasmspawner_tests::service::Service;

use crate::labs::service_with;
use crate::site::{Site, until};

const PERMISSIONS: &str = include_str!("../../../../deploy/permissions/workloads.yaml");

/// The workloads into which everybody may put labs.
const ALLOWED: [&str; 12] = [
    "web", "scaled", "replaced", "synced", "shrunk", "paused", "undone", "deleted", "mounted", "late", "set",
    "agent",
];

/// A namespace with an owner's web services, and the service with its permissions there.
pub(crate) struct Shop<'a> {
    pub(crate) site: &'a Site,
    pub(crate) service: Service,
    pub(crate) namespace: String,
}

/// Creates the namespace of the web services, with the permissions of the service there. Returns its name.
pub(crate) async fn permitted_namespace(site: &Site) -> String {
    let namespace = site.namespace("shop").await;
    site.apply(&PERMISSIONS.replace("namespace: shop", "namespace: wasmspawner-shop")).await;
    namespace
}

/// The path of the lab that a user string names.
pub(crate) fn server(user: &str, kind: &str, namespace: &str, name: &str) -> String {
    let wanted = wasmspawner_core::policy::user_string::UserString::parse(&format!(
        "{user}~workload={kind}/{namespace}/{name}"
    ));
    format!("{user}/servers/{}", wanted.unwrap().lab().server)
}

impl<'a> Shop<'a> {
    /// Starts the service. `namespaces` is the value of `kubernetes.namespaces`.
    pub(crate) async fn open(site: &'a Site, namespaces: &str) -> Self {
        Self::open_with(site, namespaces, &ALLOWED).await
    }

    /// The same, but everybody may put labs into every workload.
    pub(crate) async fn open_for_all(site: &'a Site) -> Self {
        Self::open_with(site, "delete", &["*"]).await
    }

    async fn open_with(site: &'a Site, namespaces: &str, allowed: &[&str]) -> Self {
        site.install_definition().await;
        let namespace = permitted_namespace(site).await;
        site.install_policy().await;
        let labs = match namespaces {
            "single" => site.namespace("labs").await,
            _ => format!("{}-delete-{{user_server}}", site.name()),
        };
        let registry = json!({ "metadata": { "name": "registry" }, "type": "kubernetes.io/dockerconfigjson",
            "stringData": { ".dockerconfigjson": "{\"auths\": {}}" } });
        let secrets: Api<Secret> = Api::namespaced(site.cluster.client.clone(), site.name());
        secrets.create(&PostParams::default(), &serde_json::from_value(registry).unwrap()).await.unwrap();
        let listed = namespace.clone();
        let mut service = service_with(site, namespaces, &labs, |config| {
            config["workloads"] = json!({ "namespaces": [listed] });
            config["lab"]["secrets"] =
                json!([{ "name": "registry", "key": ".dockerconfigjson", "pull_secret": true }]);
            let policies = config["policies"].as_array_mut().unwrap();
            policies[0]["config"]["workloads"] = json!([
                { "workloads": allowed.iter().map(|name| format!("*/{listed}/{name}")).collect::<Vec<_>>() },
                { "workloads": [format!("*/{listed}/*")], "groups": ["owners"] },
            ]);
        });
        service.run().await.unwrap();
        Self { site, service, namespace }
    }

    pub(crate) fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.site.cluster.client.clone(), &self.namespace)
    }

    pub(crate) async fn get(&self, name: &str) -> Deployment {
        self.deployments().get(name).await.unwrap()
    }

    /// Creates a web service and waits for its pods.
    pub(crate) async fn deploy(&self, name: &str, replicas: u32) -> Deployment {
        let object = deployment(name, replicas);
        let api = self.deployments();
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        self.rolled_out(name).await;
        api.get(name).await.unwrap()
    }

    /// Waits until all pods of a web service have its present template, and are ready.
    pub(crate) async fn rolled_out(&self, name: &str) {
        until(async || {
            let found = self.get(name).await;
            let (spec, status) = (found.spec.unwrap(), found.status.unwrap_or_default());
            let wanted = spec.replicas.unwrap_or(1);
            status.observed_generation == found.metadata.generation
                && status.replicas.unwrap_or_default() == wanted
                && status.updated_replicas.unwrap_or_default() == wanted
                && status.ready_replicas.unwrap_or_default() == wanted
        })
        .await;
    }

    /// The pods of a web service that are not being deleted.
    pub(crate) async fn pods(&self, name: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.site.cluster.client.clone(), &self.namespace);
        let of_service = ListParams::default().labels(&format!("app={name}"));
        let mut found = pods.list(&of_service).await.unwrap().items;
        found.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        found
    }

    pub(crate) fn user_string(&self, user: &str, kind: &str, name: &str) -> String {
        format!("{user}~workload={kind}/{}/{name}", self.namespace)
    }

    /// Puts a lab of a user into a workload, and waits until it is running or has failed.
    pub(crate) async fn spawn(&self, client: &Client, user: &str, kind: &str, name: &str) -> Vec<Event> {
        let body = json!({ "user_string": self.user_string(user, kind, name) });
        let answer = client.spawn_with(user, &body).await.unwrap();
        assert_eq!(answer.status, 303, "{answer:?}");
        let lab = server(user, kind, &self.namespace, name);
        client.events(&lab).await.unwrap().to_end().await.unwrap()
    }

    pub(crate) fn record_name(&self, user: &str) -> String {
        self.record_of(user, "deployment", "web")
    }

    pub(crate) fn record_of(&self, user: &str, kind: &str, name: &str) -> String {
        let text = self.user_string(user, kind, name);
        let lab = wasmspawner_core::policy::user_string::UserString::parse(&text).unwrap().lab();
        wasmspawner_core::names::spawn_key::SpawnKey::from(lab).object_name().to_string()
    }

    /// The record of the lab in `web`.
    pub(crate) async fn record(&self, user: &str) -> Value {
        let record = self.site.spawns().get(&self.record_name(user)).await.unwrap();
        record.data
    }
}

/// A web service of its owner.
pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{ "name": "web", "image": "web:1", "ports": [{ "containerPort": 80 }] }],
                },
            },
        },
    })
}
