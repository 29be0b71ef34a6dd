//! The site's own Secrets, whose values are copied into labs.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;

use super::KubernetesError;
use super::retry::{RetryPolicy, retrying};
use crate::watches::Readable;

/// The Secrets of the service's own namespace.
#[derive(Clone)]
pub struct SiteSecrets {
    secrets: Api<Readable<Secret>>,
    retry_policy: RetryPolicy,
}

impl SiteSecrets {
    /// The Secrets in `namespace`. One request may take `request_timeout`; it is retried for a minute.
    pub fn new(client: Client, namespace: &str, request_timeout: Duration) -> Self {
        let retry_policy = RetryPolicy::for_a_minute(request_timeout);
        Self { secrets: Api::namespaced(client, namespace), retry_policy }
    }

    /// Reads all keys of a Secret. If the Secret does not exist, the error names it.
    pub async fn read(&self, name: &str) -> Result<BTreeMap<String, ByteString>, KubernetesError> {
        let action = format!("read Secret {name}");
        let secret = retrying(&self.retry_policy, &action, || self.secrets.get(name)).await?;
        Ok(secret.required()?.data.unwrap_or_default())
    }
}
