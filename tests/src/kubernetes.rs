//! The Kubernetes that `TEST_KUBECONFIG` leads to: `make test` starts a control plane for it.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

/// What a test says that finds no cluster.
pub const SKIPPED: &str = "skipped: TEST_KUBECONFIG is not set; `make test` starts a control plane";

/// A cluster, and a namespace of the test's own in it.
pub struct Cluster {
    /// May do everything.
    pub client: Client,
    /// Nobody else uses it.
    pub namespace: String,
}

impl Cluster {
    /// Makes a namespace that is called `purpose` and something. None where `TEST_KUBECONFIG` is not set.
    pub async fn enter(purpose: &str) -> anyhow::Result<Option<Self>> {
        let Some(kubeconfig) = kubeconfig()? else { return Ok(None) };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace =
            serde_json::from_value(json!({ "metadata": { "generateName": format!("{purpose}-") } }))?;
        let made = namespaces.create(&PostParams::default(), &namespace).await?;
        Ok(Some(Self { client, namespace: made.metadata.name.context("no name")? }))
    }

    /// True when pods run there without the test's doing.
    pub async fn has_nodes(&self) -> anyhow::Result<bool> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        Ok(!nodes.list(&ListParams::default().limit(1)).await?.items.is_empty())
    }

    /// A kubeconfig for somebody else with this token.
    pub fn kubeconfig(&self, token: &str) -> anyhow::Result<String> {
        let mut config = kubeconfig()?.context("TEST_KUBECONFIG is not set")?;
        for user in &mut config.auth_infos {
            user.auth_info = Some(serde_json::from_value(json!({ "token": token }))?);
        }
        Ok(serde_json::to_string(&config)?)
    }

    /// Deletes the namespace.
    pub async fn leave(self) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client);
        namespaces.delete(&self.namespace, &DeleteParams::default()).await?;
        Ok(())
    }
}

fn kubeconfig() -> anyhow::Result<Option<Kubeconfig>> {
    let file = std::env::var_os("TEST_KUBECONFIG");
    Ok(file.map(Kubeconfig::read_from).transpose()?)
}
