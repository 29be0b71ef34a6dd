//! Everything of ours that a cluster has: what a restart rebuilds from.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use super::KubernetesError;

/// The objects that tell which labs there are.
#[derive(Debug, Default)]
pub struct Found {
    /// Namespaces of labs.
    pub namespaces: Vec<Namespace>,
    /// Configuration objects of labs; one a lab carries its record.
    pub config_maps: Vec<ConfigMap>,
    /// Pods of labs.
    pub pods: Vec<Pod>,
}

const PAGE: u32 = 500;

/// One paged list a kind, whatever the number of labs.
pub async fn list_labs(client: &Client, selector: &str) -> Result<Found, KubernetesError> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let config_maps = Api::<ConfigMap>::all(client.clone());
    let pods = Api::<Pod>::all(client.clone());
    let (namespaces, config_maps, pods) = tokio::try_join!(
        list(&namespaces, selector, "list Namespaces"),
        list(&config_maps, selector, "list ConfigMaps"),
        list(&pods, selector, "list Pods"),
    )?;
    Ok(Found { namespaces, config_maps, pods })
}

/// Every object of a kind that `selector` selects.
pub(super) async fn list<K>(api: &Api<K>, selector: &str, action: &str) -> Result<Vec<K>, KubernetesError>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut items = Vec::new();
    let mut params = ListParams::default().labels(selector).limit(PAGE);
    loop {
        let page = api.list(&params).await.map_err(|error| KubernetesError::from_client(action, error))?;
        items.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(items),
        }
    }
}
