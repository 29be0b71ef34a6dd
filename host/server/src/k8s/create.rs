//! Creates the objects of a lab.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::labels::{JOB_ID_LABEL, SPAWN_LABEL};
use wasmspawner_core::manifest::{LabObject, LabObjects};

use super::retry::{RetryPolicy, retrying};
use super::{KubernetesError, StatusReason};

/// The pause between two reads of an object that must be deleted before a new one can be created.
const PAUSE: Duration = Duration::from_secs(1);

/// The field manager of what this service writes.
const FIELD_MANAGER: &str = "wasmspawner";

/// Creates the objects of labs and never changes one that exists, so that a retry finds the objects of the attempt
/// before it.
#[derive(Clone)]
pub struct Creator {
    client: Client,
    request_timeout: Duration,
}

impl Creator {
    /// A `Creator` for `client`. Each request may take `request_timeout`.
    pub fn new(client: Client, request_timeout: Duration) -> Self {
        Self { client, request_timeout }
    }

    /// Creates a lab within the time `within`: the namespace first, then everything else in parallel, then the pod. If
    /// an object exists already and does not belong to the spawn whose record has `spawn_uid`, it is left alone and the
    /// creation fails.
    pub async fn create_lab(
        &self,
        objects: &LabObjects,
        spawn_uid: &str,
        within: Duration,
        cancel: CancellationToken,
    ) -> Result<CreatedLab, KubernetesError> {
        let retry_policy = RetryPolicy { request: self.request_timeout, total: within, cancel };
        let namespace = self.create_object(objects.first(), spawn_uid, &retry_policy).await?;
        let rest: Vec<LabObject> = objects.rest().collect();
        // Waits for all of them, also when one fails, so that no request is still under way when the lab is deleted
        // again.
        let created =
            join_all(rest.iter().map(|object| self.create_object(object, spawn_uid, &retry_policy))).await;
        created.into_iter().collect::<Result<Vec<_>, _>>()?;
        let pod =
            self.create_object(&LabObject::from(objects.last().clone()), spawn_uid, &retry_policy).await?;
        Ok(CreatedLab { namespace: parse(namespace)?, pod: parse(pod)? })
    }

    async fn create_object(
        &self,
        object: &LabObject,
        spawn_uid: &str,
        retry_policy: &RetryPolicy,
    ) -> Result<DynamicObject, KubernetesError> {
        let value = object.to_value();
        let resource = api_resource(&value);
        let api: Api<DynamicObject> = match &object.metadata().namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let action = format!("create {} {}", object.kind(), object.name());
        match object {
            LabObject::Namespace(_) | LabObject::Pod(_) => {
                create_own(&api, &dynamic(value)?, object.kind(), spawn_uid, &action, retry_policy).await
            }
            // Whether an existing namespace is being deleted is not checked: creating the other objects in it would
            // fail then.
            LabObject::RetainedNamespace(_) => {
                let namespace = dynamic(value)?;
                Ok(create(&api, &namespace, &action, retry_policy).await?.unwrap_or(namespace))
            }
            LabObject::PersistentVolumeClaim(_) => {
                create_or_keep(&api, &dynamic(value)?, &action, retry_policy).await
            }
            _ => {
                create_own_unread(&api, &dynamic(value)?, object.kind(), spawn_uid, &action, retry_policy)
                    .await
            }
        }
    }
}

/// The objects of a new lab, as the API server returned them.
#[derive(Debug)]
pub struct CreatedLab {
    /// The namespace. If it is retained and existed already, this is the object as it was requested.
    pub namespace: Namespace,
    /// The pod.
    pub pod: Pod,
}

/// Creates an object that must belong to the spawn. If it exists already, either it belongs to the spawn, because the
/// answer to an earlier attempt was lost, or it does not, which is an error.
async fn create_own(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    kind: &'static str,
    spawn_uid: &str,
    action: &str,
    retry_policy: &RetryPolicy,
) -> Result<DynamicObject, KubernetesError> {
    let may_keep = |found: &DynamicObject| {
        if !belongs_to(&found.metadata, spawn_uid) {
            return Err(taken(kind, object));
        }
        // An object of an earlier spawn of the lab is being deleted, and must be gone first.
        Ok(found.metadata.deletion_timestamp.is_none() && same_job(found, object))
    };
    create_or(api, object, action, retry_policy, may_keep).await
}

/// Like `create_own`, for kinds that the service may not read, such as Secrets. Whether an existing object belongs to
/// the spawn is checked with a JSON patch that tests its label and changes nothing.
async fn create_own_unread(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    kind: &'static str,
    spawn_uid: &str,
    action: &str,
    retry_policy: &RetryPolicy,
) -> Result<DynamicObject, KubernetesError> {
    if let Some(created) = create(api, object, action, retry_policy).await? {
        return Ok(created);
    }
    let label = format!("/metadata/labels/{}", SPAWN_LABEL.replace('/', "~1"));
    let test = serde_json::from_value(json!([{ "op": "test", "path": label, "value": spawn_uid }]));
    let test = test.map_err(|error| KubernetesError::Malformed(Box::new(error)))?;
    let (params, patch) = (PatchParams::default(), Patch::<Value>::Json(test));
    let name = object.metadata.name.clone().unwrap_or_default();
    match retrying(retry_policy, action, || api.patch(&name, &params, &patch)).await {
        Err(KubernetesError::Refused { reason: StatusReason::Invalid, .. }) => Err(taken(kind, object)),
        answer => answer,
    }
}

fn taken(kind: &'static str, object: &DynamicObject) -> KubernetesError {
    KubernetesError::Taken { kind, name: object.metadata.name.clone().unwrap_or_default() }
}

/// True if the object's label names the spawn whose record has this uid.
pub(crate) fn belongs_to(metadata: &ObjectMeta, spawn_uid: &str) -> bool {
    let label = metadata.labels.as_ref().and_then(|labels| labels.get(SPAWN_LABEL));
    !spawn_uid.is_empty() && label.is_some_and(|label| label == spawn_uid)
}

/// True if the same spawn made both objects.
fn same_job(one: &DynamicObject, other: &DynamicObject) -> bool {
    let job = |object: &DynamicObject| object.metadata.labels.as_ref()?.get(JOB_ID_LABEL).cloned();
    job(one) == job(other)
}

fn parse<K: Resource + DeserializeOwned>(object: DynamicObject) -> Result<K, KubernetesError> {
    object.try_parse().map_err(|error| KubernetesError::Malformed(Box::new(error)))
}

/// Creates an object. Returns `None` if an object of this name exists already, and does not change that one.
async fn create(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    action: &str,
    retry_policy: &RetryPolicy,
) -> Result<Option<DynamicObject>, KubernetesError> {
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    match retrying(retry_policy, action, || api.create(&params, object)).await {
        Err(KubernetesError::Refused { reason: StatusReason::AlreadyExists, .. }) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Creates an object, or leaves the existing one alone. If the existing one is being deleted, waits and creates a new
/// one.
async fn create_or_keep(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    action: &str,
    retry_policy: &RetryPolicy,
) -> Result<DynamicObject, KubernetesError> {
    create_or(api, object, action, retry_policy, |found| Ok(found.metadata.deletion_timestamp.is_none()))
        .await
}

/// Creates an object. If one exists already, it is returned if `may_keep` accepts it. Otherwise it is being deleted, and
/// the new one is created when it is gone.
async fn create_or(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    action: &str,
    retry_policy: &RetryPolicy,
    may_keep: impl Fn(&DynamicObject) -> Result<bool, KubernetesError>,
) -> Result<DynamicObject, KubernetesError> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let deadline = Instant::now() + retry_policy.total;
    loop {
        if let Some(created) = create(api, object, action, retry_policy).await? {
            return Ok(created);
        }
        if let Some(found) = retrying(retry_policy, action, || api.get_opt(&name)).await? {
            if may_keep(&found)? {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                return Err(KubernetesError::StillBeingDeleted { action: action.to_owned() });
            }
        }
        retry_policy.pause(PAUSE).await?;
    }
}

fn dynamic(value: serde_json::Value) -> Result<DynamicObject, KubernetesError> {
    serde_json::from_value(value).map_err(|error| KubernetesError::Malformed(Box::new(error)))
}

/// The API resource of an object, from its own `apiVersion` and `kind`.
fn api_resource(value: &serde_json::Value) -> ApiResource {
    let text = |key: &str| value.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_name_of_an_object_is_that_of_kubernetes() {
        for (version, kind, plural) in [
            ("v1", "ConfigMap", "configmaps"),
            ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
            ("v1", "ResourceQuota", "resourcequotas"),
        ] {
            let resource = api_resource(&serde_json::json!({ "apiVersion": version, "kind": kind }));
            assert_eq!((resource.plural.as_str(), resource.api_version.as_str()), (plural, version));
        }
    }
}
