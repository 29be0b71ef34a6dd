//! Deleting a lab.

use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{
    ConfigMap, LimitRange, Namespace, Pod, ResourceQuota, Secret, ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Api, DeleteParams, ListParams, Preconditions};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use super::KubernetesError;
use super::retry::{Patience, retrying};

/// What a deletion found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The object is on its way out.
    Accepted,
    /// There was nothing to delete.
    Gone,
}

/// Which pod to delete.
#[derive(Debug)]
pub struct PodToDelete<'a> {
    /// Where it is.
    pub namespace: &'a str,
    /// What it is called.
    pub name: &'a str,
    /// Which of that name, where that is known.
    pub uid: Option<String>,
}

/// Deletes the objects of labs.
#[derive(Clone)]
pub struct Deleter {
    client: Client,
    request_timeout: Duration,
}

impl Deleter {
    /// Deletes through `client`, each request bounded by `request_timeout`.
    pub fn new(client: Client, request_timeout: Duration) -> Self {
        Self { client, request_timeout }
    }

    /// Deletes a pod, giving its containers `grace_seconds` to end.
    pub async fn pod(
        &self,
        PodToDelete { namespace, name, uid }: PodToDelete<'_>,
        grace_seconds: u32,
        within: Duration,
    ) -> Result<Deletion, KubernetesError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let this_one = uid.is_some();
        let how = DeleteParams {
            grace_period_seconds: Some(grace_seconds),
            preconditions: this_one.then_some(Preconditions { uid, resource_version: None }),
            ..DeleteParams::background()
        };
        let action = format!("delete Pod {namespace}/{name}");
        match self.delete(&pods, name, &how, &action, within).await {
            // Another pod has its name by now.
            Err(KubernetesError::Refused { reason, .. }) if this_one && reason == "Conflict" => {
                Ok(Deletion::Gone)
            }
            answer => answer,
        }
    }

    /// Deletes a namespace and all that is in it.
    pub async fn namespace(&self, name: &str, within: Duration) -> Result<Deletion, KubernetesError> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let how = DeleteParams::background();
        match self.delete(&namespaces, name, &how, &format!("delete Namespace {name}"), within).await {
            // The namespace controller is at it already.
            Err(KubernetesError::Refused { reason, .. }) if reason == "Conflict" => Ok(Deletion::Accepted),
            answer => answer,
        }
    }

    /// Deletes what a lab has in a namespace that stays: what `selector` selects of each kind, volume claims excepted.
    pub async fn lab_objects(
        &self,
        namespace: &str,
        selector: &str,
        within: Duration,
    ) -> Result<Deletion, KubernetesError> {
        tokio::try_join!(
            self.all::<ConfigMap>(namespace, selector, within),
            self.all::<Secret>(namespace, selector, within),
            self.all::<ServiceAccount>(namespace, selector, within),
            self.all::<ResourceQuota>(namespace, selector, within),
            self.all::<LimitRange>(namespace, selector, within),
            self.all::<NetworkPolicy>(namespace, selector, within),
        )?;
        Ok(Deletion::Gone)
    }

    async fn all<K>(&self, namespace: &str, selector: &str, within: Duration) -> Result<(), KubernetesError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let patience = Patience::of(self.request_timeout, within);
        let (how, which) = (DeleteParams::background(), ListParams::default().labels(selector));
        let action = format!("delete each {} of the lab in {namespace}", K::kind(&()));
        retrying(&patience, &action, || api.delete_collection(&how, &which)).await.map(drop)
    }

    async fn delete<K>(
        &self,
        api: &Api<K>,
        name: &str,
        how: &DeleteParams,
        action: &str,
        within: Duration,
    ) -> Result<Deletion, KubernetesError>
    where
        K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let patience = Patience::of(self.request_timeout, within);
        match retrying(&patience, action, || api.delete(name, how)).await {
            Ok(_) => Ok(Deletion::Accepted),
            Err(KubernetesError::Refused { reason, .. }) if reason == "NotFound" => Ok(Deletion::Gone),
            Err(error) => Err(error),
        }
    }
}
