//! Installs definitions of custom resources.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::Value;
use wasmspawner_core::record::definitions::definitions;

use super::KubernetesError;
use super::retry::{RetryPolicy, retrying};

/// The time limit for installing one definition.
const TRY_FOR: Duration = Duration::from_secs(10);

/// Installs or updates the definitions of the service's own kinds. Only the one-machine cluster needs this.
pub async fn install_definitions(client: Client) -> Result<(), KubernetesError> {
    for definition in definitions() {
        install(&client, &definition).await?;
    }
    Ok(())
}

async fn install(client: &Client, definition: &Value) -> Result<(), KubernetesError> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let (params, patch) = (PatchParams::apply("wasmspawner").force(), Patch::Apply(definition));
    let action = format!("install {name}");
    let retry_policy = RetryPolicy::from_timeouts(TRY_FOR, TRY_FOR);
    retrying(&retry_policy, &action, || definitions.patch(name, &params, &patch)).await.map(drop)
}
