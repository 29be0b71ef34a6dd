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

/// The pause between two looks at an object that must be deleted before a new one can be created.
const PAUSE: Duration = Duration::from_secs(1);

/// The field manager of what this service writes.
const FIELD_MANAGER: &str = "wasmspawner";

/// Creates the objects of labs and never changes one that exists, so that a retry finds what the attempt before it
/// made.
#[derive(Clone)]
pub struct Applier {
    client: Client,
    request_timeout: Duration,
}

impl Applier {
    /// An `Applier` for `client`. Each request may take `request_timeout`.
    pub fn new(client: Client, request_timeout: Duration) -> Self {
        Self { client, request_timeout }
    }

    /// Creates a lab within the time `within`: the namespace first, then everything else in parallel, then the pod. If
    /// an object exists already and does not belong to `spawn`, the uid of the lab's record, it is left alone and the
    /// creation fails.
    pub async fn lab(
        &self,
        objects: &LabObjects,
        spawn: &str,
        within: Duration,
        cancel: CancellationToken,
    ) -> Result<CreatedLab, KubernetesError> {
        let retry_policy = RetryPolicy { request: self.request_timeout, total: within, cancel };
        let namespace = self.object(objects.first(), spawn, &retry_policy).await?;
        let rest: Vec<LabObject> = objects.rest().collect();
        // Waits for all of them, also when one fails, so that no request is still under way when the lab is deleted
        // again.
        let created = join_all(rest.iter().map(|object| self.object(object, spawn, &retry_policy))).await;
        created.into_iter().collect::<Result<Vec<_>, _>>()?;
        let pod = self.object(&LabObject::from(objects.last().clone()), spawn, &retry_policy).await?;
        Ok(CreatedLab { namespace: parse(namespace)?, pod: parse(pod)? })
    }

    async fn object(
        &self,
        object: &LabObject,
        spawn: &str,
        retry_policy: &RetryPolicy,
    ) -> Result<DynamicObject, KubernetesError> {
        let value = object.to_value();
        let kind = kind_of(&value);
        let api: Api<DynamicObject> = match &object.metadata().namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        };
        let action = format!("create {} {}", object.kind(), object.name());
        match object {
            LabObject::Namespace(_) | LabObject::Pod(_) => {
                create_own(&api, &dynamic(value)?, object.kind(), spawn, &action, retry_policy).await
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
            _ => create_own_unread(&api, &dynamic(value)?, object.kind(), spawn, &action, retry_policy).await,
        }
    }
}

/// The objects of a new lab, as the API server returned them.
#[derive(Debug)]
pub struct CreatedLab {
    /// The namespace. If it is one that is kept and it existed already, this is the object as it was requested.
    pub namespace: Namespace,
    /// The pod.
    pub pod: Pod,
}

/// Creates an object that must belong to the spawn. If it exists already, either it belongs to `spawn`, because the
/// answer to an earlier attempt was lost, or it belongs to somebody else, which is an error.
async fn create_own(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    kind: &'static str,
    spawn: &str,
    action: &str,
    retry_policy: &RetryPolicy,
) -> Result<DynamicObject, KubernetesError> {
    let judge = |found: &DynamicObject| {
        if !belongs_to(&found.metadata, spawn) {
            return Err(taken(kind, object));
        }
        // An object of an earlier spawn of the lab is being deleted, and must be gone first.
        Ok(found.metadata.deletion_timestamp.is_none() && same_job(found, object))
    };
    create_or(api, object, action, retry_policy, judge).await
}

/// Like `create_own`, for kinds that the service may not read, such as Secrets. Whether an existing object belongs to
/// the spawn is checked with a JSON patch that tests its label and changes nothing.
async fn create_own_unread(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    kind: &'static str,
    spawn: &str,
    action: &str,
    retry_policy: &RetryPolicy,
) -> Result<DynamicObject, KubernetesError> {
    if let Some(created) = create(api, object, action, retry_policy).await? {
        return Ok(created);
    }
    let label = format!("/metadata/labels/{}", SPAWN_LABEL.replace('/', "~1"));
    let test = serde_json::from_value(json!([{ "op": "test", "path": label, "value": spawn }]));
    let test = test.map_err(|error| KubernetesError::Malformed(Box::new(error)))?;
    let (how, patch) = (PatchParams::default(), Patch::<Value>::Json(test));
    let name = object.metadata.name.clone().unwrap_or_default();
    match retrying(retry_policy, action, || api.patch(&name, &how, &patch)).await {
        Err(KubernetesError::Refused { reason: StatusReason::Invalid, .. }) => Err(taken(kind, object)),
        answer => answer,
    }
}

fn taken(kind: &'static str, object: &DynamicObject) -> KubernetesError {
    KubernetesError::Taken { kind, name: object.metadata.name.clone().unwrap_or_default() }
}

/// True if the object's label names the spawn whose record has this uid.
pub(crate) fn belongs_to(metadata: &ObjectMeta, spawn: &str) -> bool {
    let label = metadata.labels.as_ref().and_then(|labels| labels.get(SPAWN_LABEL));
    !spawn.is_empty() && label.is_some_and(|label| label == spawn)
}

/// True if the same spawn made both objects.
fn same_job(one: &DynamicObject, other: &DynamicObject) -> bool {
    let job = |object: &DynamicObject| object.metadata.labels.as_ref()?.get(JOB_ID_LABEL).cloned();
    job(one) == job(other)
}

fn parse<K: Resource + DeserializeOwned>(object: DynamicObject) -> Result<K, KubernetesError> {
    object.try_parse().map_err(|error| KubernetesError::Malformed(Box::new(error)))
}

/// Creates an object. `None` if one of its name exists; that one is left alone.
async fn create(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    action: &str,
    retry_policy: &RetryPolicy,
) -> Result<Option<DynamicObject>, KubernetesError> {
    let how = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    match retrying(retry_policy, action, || api.create(&how, object)).await {
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

/// Creates an object. If one exists already, `judge` decides whether to return it; otherwise waits until it is deleted.
async fn create_or(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    action: &str,
    retry_policy: &RetryPolicy,
    judge: impl Fn(&DynamicObject) -> Result<bool, KubernetesError>,
) -> Result<DynamicObject, KubernetesError> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let deadline = Instant::now() + retry_policy.total;
    loop {
        if let Some(created) = create(api, object, action, retry_policy).await? {
            return Ok(created);
        }
        if let Some(found) = retrying(retry_policy, action, || api.get_opt(&name)).await? {
            if judge(&found)? {
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
fn kind_of(value: &serde_json::Value) -> ApiResource {
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
            let resource = kind_of(&serde_json::json!({ "apiVersion": version, "kind": kind }));
            assert_eq!((resource.plural.as_str(), resource.api_version.as_str()), (plural, version));
        }
    }
}
