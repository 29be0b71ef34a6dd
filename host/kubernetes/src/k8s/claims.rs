//! Volume claims, which can outlive labs.

use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, DeleteParams};

use super::retry::{RetryPolicy, retrying};
use super::{DeletionAnswer, KubernetesError, StatusReason};
use crate::watches::Readable;

/// Reads and deletes volume claims.
#[derive(Clone)]
pub struct Claims {
    client: Client,
    retry_policy: RetryPolicy,
}

impl Claims {
    /// Creates a `Claims` for `client`. One request may take `request_timeout`; it is retried for a minute.
    pub fn new(client: Client, request_timeout: Duration) -> Self {
        Self { client, retry_policy: RetryPolicy::for_a_minute(request_timeout) }
    }

    /// Reads the metadata of a claim. Returns `None` if there is no claim of this name.
    pub async fn find(&self, namespace: &str, name: &str) -> Result<Option<ObjectMeta>, KubernetesError> {
        let (claims, action) =
            (self.api(namespace), format!("read PersistentVolumeClaim {namespace}/{name}"));
        let found = retrying(&self.retry_policy, &action, || claims.get_opt(name)).await?;
        Ok(found.map(Readable::required).transpose()?.map(|claim| claim.metadata))
    }

    /// Deletes a claim. Kubernetes delays the deletion until no pod uses the claim.
    pub async fn delete(&self, namespace: &str, name: &str) -> Result<DeletionAnswer, KubernetesError> {
        let action = format!("delete PersistentVolumeClaim {namespace}/{name}");
        let (claims, params) = (self.api(namespace), DeleteParams::background());
        match retrying(&self.retry_policy, &action, || claims.delete(name, &params)).await {
            Ok(_) => Ok(DeletionAnswer::Accepted),
            Err(KubernetesError::Refused { reason: StatusReason::NotFound, .. }) => Ok(DeletionAnswer::Gone),
            Err(error) => Err(error),
        }
    }

    fn api(&self, namespace: &str) -> Api<Readable<PersistentVolumeClaim>> {
        Api::namespaced(self.client.clone(), namespace)
    }
}
