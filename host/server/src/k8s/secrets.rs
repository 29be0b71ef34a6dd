//! The site's own secrets, which are copied into labs.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;

use super::KubernetesError;

/// All keys of a Secret. An unknown Secret is an error that names it.
pub async fn read_secret(
    client: &kube::Client,
    namespace: &str,
    name: &str,
) -> Result<BTreeMap<String, ByteString>, KubernetesError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = secrets
        .get(name)
        .await
        .map_err(|error| KubernetesError::from_client(&format!("read Secret {namespace}/{name}"), error))?;
    Ok(secret.data.unwrap_or_default())
}
