//! The Kubernetes of `TEST_KUBECONFIG` or `TEST_KUBECONFIG_2`; `make test` starts a control plane for each.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use wasmspawner_core::record;
use wasmspawner_core::record::definitions::definitions;

/// The message of a test without a cluster.
pub const SKIPPED: &str = "skipped: TEST_KUBECONFIG is not set; `make test` starts a control plane";

/// The files with all permissions in a cluster. With two clusters, two tests run at a time.
const FILES: [&str; 2] = ["TEST_KUBECONFIG", "TEST_KUBECONFIG_2"];

/// A cluster that no other test uses, and the test's own namespace in it. A cluster has one set of definitions, and these
/// tests add one node.
pub struct Cluster {
    /// A client with all permissions.
    pub client: Client,
    /// A namespace that no other test has had.
    pub namespace: String,
    file: PathBuf,
    _lock: File,
}

impl Cluster {
    /// Creates a namespace whose name begins with `purpose`, in a cluster that no other test uses; waits for one.
    /// `None` if `TEST_KUBECONFIG` is not set.
    pub async fn enter(purpose: &str) -> anyhow::Result<Option<Self>> {
        let files: Vec<PathBuf> = FILES.iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
        let Some(first) = files.first().cloned() else { return Ok(None) };
        let (file, lock) = tokio::task::spawn_blocking(|| lock_one(files, first)).await??;
        let kubeconfig = Kubeconfig::read_from(&file)?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace =
            serde_json::from_value(json!({ "metadata": { "generateName": format!("{purpose}-") } }))?;
        let made = namespaces.create(&PostParams::default(), &namespace).await?;
        Ok(Some(Self { client, namespace: made.metadata.name.context("no name")?, file, _lock: lock }))
    }

    /// Returns true if the cluster already has a node, so that its pods run.
    pub async fn has_nodes(&self) -> anyhow::Result<bool> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        Ok(!nodes.list(&ListParams::default().limit(1)).await?.items.is_empty())
    }

    /// The kubeconfig file with all permissions.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// A kubeconfig for the account with this token.
    pub fn kubeconfig(&self, token: &str) -> anyhow::Result<String> {
        let mut config = Kubeconfig::read_from(&self.file)?;
        for user in &mut config.auth_infos {
            user.auth_info = Some(serde_json::from_value(json!({ "token": token }))?);
        }
        Ok(serde_json::to_string(&config)?)
    }

    /// A client for the account with this token.
    pub async fn client_of(&self, token: &str) -> anyhow::Result<Client> {
        let config = Kubeconfig::from_yaml(&self.kubeconfig(token)?)?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// Installs the definition of `Spawn`, and waits until it is served.
    pub async fn install_definition(&self) -> anyhow::Result<()> {
        let definition = record::definition();
        let name = definition["metadata"]["name"].as_str().context("a kind without a name")?;
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let params = PatchParams::apply("wasmspawner-tests").force();
        definitions.patch(name, &params, &Patch::Apply(&definition)).await?;
        let mut again = tokio::time::interval(Duration::from_millis(100));
        let served = async {
            while !definitions.get(name).await?.status.is_some_and(|status| {
                let conditions = status.conditions.unwrap_or_default();
                conditions
                    .iter()
                    .any(|condition| condition.type_ == "Established" && condition.status == "True")
            }) {
                again.tick().await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(Duration::from_mins(1), served).await.context("the kind Spawn is not served")?
    }

    /// Deletes the namespace.
    pub async fn leave(self) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client);
        namespaces.delete(&self.namespace, &DeleteParams::default()).await?;
        Ok(())
    }
}

/// The records in a namespace.
pub fn records(client: Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client, namespace, &spawn_resource())
}

fn spawn_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(record::GROUP, record::VERSION, record::KIND))
}

/// Removes the definitions of the service and all their objects, and waits until they are gone. Finalizers are removed,
/// because an object whose service has ended would otherwise never be deleted.
pub async fn remove_definition(client: Client) -> anyhow::Result<()> {
    for definition in definitions() {
        let text =
            |path: &str| definition.pointer(path).and_then(serde_json::Value::as_str).unwrap_or_default();
        let kind = GroupVersionKind::gvk(record::GROUP, record::VERSION, text("/spec/names/kind"));
        let resource = ApiResource::from_gvk_with_plural(&kind, text("/spec/names/plural"));
        remove_kind(&client, text("/metadata/name"), &resource).await?;
    }
    Ok(())
}

async fn remove_kind(client: &Client, name: &str, resource: &ApiResource) -> anyhow::Result<()> {
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    if definitions.get_opt(name).await?.is_none() {
        return Ok(());
    }
    definitions.delete(name, &DeleteParams::default()).await?;
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let mut again = tokio::time::interval(Duration::from_millis(100));
    let going = async {
        while definitions.get_opt(name).await?.is_some() {
            again.tick().await;
            // The definition is served as long as there are objects.
            let left = objects.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
            for object in left {
                let api = match object.namespace() {
                    Some(namespace) => Api::namespaced_with(client.clone(), &namespace, resource),
                    None => objects.clone(),
                };
                match api.patch(&object.name_any(), &PatchParams::default(), &release).await {
                    // Kubernetes says conflict of an object that goes while it is patched.
                    Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                    answer => drop::<DynamicObject>(answer?),
                }
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_mins(1), going)
        .await
        .with_context(|| format!("{name} does not go"))?
}

/// Locks the first of these files that no other test has locked, or waits for `first`.
fn lock_one(files: Vec<PathBuf>, first: PathBuf) -> std::io::Result<(PathBuf, File)> {
    for file in files {
        let lock = File::open(&file)?;
        if lock.try_lock().is_ok() {
            return Ok((file, lock));
        }
    }
    let lock = File::open(&first)?;
    lock.lock()?;
    Ok((first, lock))
}
