//! Reads, writes and follows custom resources of one kind.

use std::marker::PhantomData;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::api::{Api, DeleteParams, DynamicObject, PostParams, Preconditions};
use kube::core::{ApiResource, DynamicResourceScope, GroupVersionKind};
use kube::runtime::watcher;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasmspawner_core::custom_resource::api_group::{API_VERSION, GROUP, VERSION};
use wasmspawner_core::custom_resource::{Kind, Object};

use super::retry::{RetryPolicy, retrying};
use super::{Connection, KubernetesError, StatusReason};
use crate::watches::{Readable, changes, short_watch};

/// The time limit of a request with its retries. A failed operation is repeated later.
const TRY_FOR: Duration = Duration::from_secs(10);

/// The custom resources of one kind, in one namespace or in none.
pub struct CustomResources<Spec, Status> {
    api: Api<DynamicObject>,
    /// The same resources, through the client for watches.
    watched: Api<Readable<DynamicObject>>,
    retry_policy: RetryPolicy,
    kind: PhantomData<fn() -> Object<Spec, Status>>,
}

/// A change of the resources of a kind.
pub enum CustomChange<K> {
    /// The complete list of resources.
    All(Vec<K>),
    /// A new or changed resource.
    Changed(Box<K>),
    /// The name and uid of a resource that is gone.
    Gone(String, String),
}

impl<Spec, Status> Clone for CustomResources<Spec, Status> {
    fn clone(&self) -> Self {
        Self {
            api: self.api.clone(),
            watched: self.watched.clone(),
            retry_policy: self.retry_policy.clone(),
            kind: PhantomData,
        }
    }
}

impl<Spec, Status> CustomResources<Spec, Status>
where
    Object<Spec, Status>: Kind + Clone + Serialize + DeserializeOwned,
    Spec: PartialEq + Clone,
    Status: PartialEq + Clone,
{
    /// Creates a client for the resources in `namespace`. Kinds that are not namespaced ignore it.
    pub fn new(connection: &Connection, namespace: &str, request_timeout: Duration) -> Self {
        let kind = GroupVersionKind::gvk(GROUP, VERSION, Object::<Spec, Status>::KIND);
        let resource = ApiResource::from_gvk_with_plural(&kind, Object::<Spec, Status>::PLURAL);
        let namespace = Object::<Spec, Status>::NAMESPACED.then_some(namespace);
        Self {
            api: api(&connection.requests, namespace, &resource),
            watched: api(&connection.watches, namespace, &resource),
            retry_policy: RetryPolicy::from_timeouts(request_timeout, TRY_FOR),
            kind: PhantomData,
        }
    }

    /// Returns false if the cluster does not know the kind. Returns true if the cluster cannot be reached, because
    /// later requests report that.
    pub async fn is_installed(&self) -> bool {
        let listed = self.api.list(&kube::api::ListParams::default().limit(1)).await;
        !matches!(listed, Err(kube::Error::Api(status)) if status.code == 404)
    }

    /// Reads the resource of this name.
    pub async fn get(&self, name: &str) -> Result<Option<Object<Spec, Status>>, KubernetesError> {
        let action = Self::action("read", name);
        retrying(&self.retry_policy, &action, || self.api.get_opt(name)).await?.map(read).transpose()
    }

    /// Creates a resource. Returns `None` if there is already one of this name.
    pub async fn create(
        &self,
        object: &Object<Spec, Status>,
    ) -> Result<Option<Object<Spec, Status>>, KubernetesError> {
        let (written, action) = (dynamic(object)?, Self::action("create", object.name()));
        let params = PostParams::default();
        match retrying(&self.retry_policy, &action, || self.api.create(&params, &written)).await {
            Err(KubernetesError::Refused { reason: StatusReason::AlreadyExists, .. }) => Ok(None),
            created => read(created?).map(Some),
        }
    }

    /// Replaces the resource `before` and its status by those of `next`, each only if it differs. Returns `None` if
    /// somebody else has changed the resource since, or if it is gone.
    pub async fn replace(
        &self,
        before: &Object<Spec, Status>,
        next: &Object<Spec, Status>,
    ) -> Result<Option<Object<Spec, Status>>, KubernetesError> {
        let (params, action) = (PostParams::default(), Self::action("update", next.name()));
        let mut current = before.clone();
        if before.metadata != next.metadata || before.spec != next.spec {
            let written = dynamic(next)?;
            let replaced = || self.api.replace(next.name(), &params, &written);
            match changed(retrying(&self.retry_policy, &action, replaced).await)? {
                Some(replaced) => current = read(replaced)?,
                None => return Ok(None),
            }
        }
        if current.status != next.status && !current.is_gone() {
            current.status = next.status.clone();
            let written = dynamic(&current)?;
            let replaced = || self.api.replace_status(next.name(), &params, &written);
            match changed(retrying(&self.retry_policy, &action, replaced).await)? {
                Some(replaced) => current = read(replaced)?,
                None => return Ok(None),
            }
        }
        Ok(Some(current))
    }

    /// Deletes a resource by its uid. Succeeds if the resource is gone already.
    pub async fn delete(&self, name: &str, uid: &str) -> Result<(), KubernetesError> {
        let action = Self::action("delete", name);
        let preconditions = Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::background() };
        changed(retrying(&self.retry_policy, &action, || self.api.delete(name, &params)).await).map(drop)
    }

    /// Follows the resources. The stream never ends. Resources that cannot be read are logged and left out.
    pub fn follow(&self) -> impl Stream<Item = CustomChange<Object<Spec, Status>>> + use<Spec, Status> {
        let mut listed = Vec::new();
        let events = changes(self.watched.clone(), short_watch());
        events.filter_map(move |event| {
            std::future::ready(match event {
                Ok(watcher::Event::Init) => {
                    listed.clear();
                    None
                }
                Ok(watcher::Event::InitApply(object)) => {
                    listed.extend(read_or_log(object));
                    None
                }
                Ok(watcher::Event::InitDone) => Some(CustomChange::All(std::mem::take(&mut listed))),
                Ok(watcher::Event::Apply(object)) => {
                    read_or_log(object).map(|object| CustomChange::Changed(Box::new(object)))
                }
                Ok(watcher::Event::Delete(object)) => {
                    let name = object.metadata.name.unwrap_or_default();
                    Some(CustomChange::Gone(name, object.metadata.uid.unwrap_or_default()))
                }
                Err(error) => {
                    let kind = Object::<Spec, Status>::KIND;
                    tracing::warn!(kind, %error, "a watch failed and is begun again");
                    None
                }
            })
        })
    }

    fn action(verb: &str, name: &str) -> String {
        format!("{verb} {} {name}", Object::<Spec, Status>::KIND)
    }
}

/// Returns the objects of a kind in `namespace`, or those of a kind that is not namespaced.
fn api<K>(client: &Client, namespace: Option<&str>, resource: &ApiResource) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

/// Returns `None` if the object is gone or has changed.
fn changed<T>(answer: Result<T, KubernetesError>) -> Result<Option<T>, KubernetesError> {
    match answer {
        Err(KubernetesError::Refused { reason: StatusReason::NotFound | StatusReason::Conflict, .. }) => {
            Ok(None)
        }
        answer => answer.map(Some),
    }
}

fn dynamic<Spec, Status>(object: &Object<Spec, Status>) -> Result<DynamicObject, KubernetesError>
where
    Object<Spec, Status>: Kind + Serialize,
{
    let mut value: Value = serde_json::to_value(object).map_err(malformed)?;
    value["apiVersion"] = json!(API_VERSION);
    value["kind"] = json!(Object::<Spec, Status>::KIND);
    serde_json::from_value(value).map_err(malformed)
}

fn read<Spec, Status>(object: DynamicObject) -> Result<Object<Spec, Status>, KubernetesError>
where
    Object<Spec, Status>: DeserializeOwned,
{
    let mut object = object;
    object.metadata.managed_fields = None;
    serde_json::to_value(object).and_then(serde_json::from_value).map_err(malformed)
}

fn read_or_log<Spec, Status>(object: DynamicObject) -> Option<Object<Spec, Status>>
where
    Object<Spec, Status>: Kind + DeserializeOwned,
{
    let name = object.metadata.name.clone().unwrap_or_default();
    match read(object) {
        Ok(object) => Some(object),
        Err(error) => {
            let kind = Object::<Spec, Status>::KIND;
            tracing::error!(kind, name, error = %super::Causes(&error), "an object cannot be read and is ignored; correct or delete it");
            None
        }
    }
}

fn malformed(error: serde_json::Error) -> KubernetesError {
    KubernetesError::Malformed(Box::new(error))
}
