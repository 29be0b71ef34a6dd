//! Creating a lab.

use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::manifest::{LabObject, LabObjects};

use super::KubernetesError;
use super::retry::{Patience, retrying};

/// Between two looks at an object that must go before a new one can be made.
const PAUSE: Duration = Duration::from_secs(1);

/// Who owns the fields that this service writes.
const FIELD_MANAGER: &str = "wasmspawner";

/// Creates the objects of labs, by server-side apply: a retry finds what the try before it did.
#[derive(Clone)]
pub struct Applier {
    client: Client,
    request_timeout: Duration,
}

impl Applier {
    /// Creates through `client`, each request bounded by `request_timeout`.
    pub fn new(client: Client, request_timeout: Duration) -> Self {
        Self { client, request_timeout }
    }

    /// Creates a lab within a time: the namespace, then everything else at once, then the pod, which is answered as
    /// it was created.
    pub async fn lab(
        &self,
        objects: &LabObjects,
        within: Duration,
        cancel: CancellationToken,
    ) -> Result<Pod, KubernetesError> {
        let patience = Patience { request: self.request_timeout, total: within, cancel };
        self.object(objects.first(), &patience).await?;
        let rest: Vec<LabObject> = objects.rest().collect();
        try_join_all(rest.iter().map(|object| self.object(object, &patience))).await?;
        let pod = self.object(&LabObject::from(objects.last().clone()), &patience).await?;
        pod.try_parse().map_err(|error| KubernetesError::Malformed(Box::new(error)))
    }

    async fn object(
        &self,
        object: &LabObject,
        patience: &Patience,
    ) -> Result<DynamicObject, KubernetesError> {
        let value = object.to_value();
        let kind = kind_of(&value);
        let api: Api<DynamicObject> = match &object.metadata().namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        };
        let action = format!("create {} {}", object.kind(), object.name());
        match object {
            // One that is on its way out shows in what is created in it.
            LabObject::RetainedNamespace(_) => {
                let namespace = dynamic(value)?;
                Ok(create(&api, &namespace, &action, patience).await?.unwrap_or(namespace))
            }
            LabObject::PersistentVolumeClaim(_) => {
                create_or_keep(&api, &dynamic(value)?, &action, patience).await
            }
            _ => {
                let (how, patch) = (PatchParams::apply(FIELD_MANAGER).force(), Patch::Apply(&value));
                retrying(patience, &action, || api.patch(object.name(), &how, &patch)).await
            }
        }
    }
}

/// Creates an object. Nothing when there is one of its name, which is left alone.
async fn create(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    action: &str,
    patience: &Patience,
) -> Result<Option<DynamicObject>, KubernetesError> {
    let how = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    match retrying(patience, action, || api.create(&how, object)).await {
        Err(KubernetesError::Refused { reason, .. }) if reason == "AlreadyExists" => Ok(None),
        answer => answer.map(Some),
    }
}

/// Creates what must be left alone when it exists, and is created anew when it is on its way out.
async fn create_or_keep(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    action: &str,
    patience: &Patience,
) -> Result<DynamicObject, KubernetesError> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let deadline = Instant::now() + patience.total;
    loop {
        if let Some(created) = create(api, object, action, patience).await? {
            return Ok(created);
        }
        match retrying(patience, action, || api.get_opt(&name)).await? {
            Some(existing) if existing.metadata.deletion_timestamp.is_none() => return Ok(existing),
            Some(_) if Instant::now() >= deadline => {
                return Err(KubernetesError::StillBeingDeleted { action: action.to_owned() });
            }
            _ => {}
        }
        patience.pause(PAUSE).await?;
    }
}

fn dynamic(value: serde_json::Value) -> Result<DynamicObject, KubernetesError> {
    serde_json::from_value(value).map_err(|error| KubernetesError::Malformed(Box::new(error)))
}

/// The API resource of an object, from its own `apiVersion` and `kind`.
fn kind_of(value: &serde_json::Value) -> ApiResource {
    let text = |key: &str| value.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_of_an_object_is_the_one_kubernetes_serves() {
        for (version, kind, plural) in [
            ("v1", "ConfigMap", "configmaps"),
            ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
            ("v1", "ResourceQuota", "resourcequotas"),
        ] {
            let resource = kind_of(&serde_json::json!({ "apiVersion": version, "kind": kind }));
            assert_eq!((resource.plural.as_str(), resource.api_version.as_str()), (plural, version));
        }
    }
}
