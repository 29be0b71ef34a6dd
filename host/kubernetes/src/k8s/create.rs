//! Creates the objects of a lab.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, Status};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::manifest::{LabObject, LabObjects, ObjectKind};
use wasmspawner_core::names::labels::{JOB_ID_LABEL, KEPT_ANNOTATION, SPAWN_LABEL};
use wasmspawner_core::record::volumes::{Growth, other_owner};

use super::creation_notes::{ClaimWait, CreationNotes, obstacle};
use super::error::says_no_such_kind;
use super::quota_count::QuotaCount;
use super::retained::{Made, RetainedNamespaces, Turn};
use super::retry::{RetryPolicy, retrying};
use super::{KubernetesError, StatusReason};

/// The pause between two reads of an object that must be deleted before a new one can be created.
const PAUSE: Duration = Duration::from_secs(1);

/// The time for enlarging a claim. A lab starts with a claim of the old size, too.
const ENLARGE_WITHIN: Duration = Duration::from_secs(10);

/// The field manager of everything that this service writes.
const FIELD_MANAGER: &str = "wasmspawner";

/// Creates the objects of labs. Existing objects are never changed, so a retry finds the objects of the previous
/// attempt. Only volume claims grow.
#[derive(Clone)]
pub struct Creator {
    client: Client,
    request_timeout: Duration,
    /// The retained namespaces; `None` if the service makes none.
    retained: Option<RetainedNamespaces>,
}

impl Creator {
    /// Creates a `Creator` for `client`. Each request may take `request_timeout`.
    pub fn new(client: Client, request_timeout: Duration) -> Self {
        Self { client, request_timeout, retained: None }
    }

    /// Returns the same creator for labs in retained namespaces.
    #[must_use]
    pub fn in_retained(mut self, namespaces: RetainedNamespaces) -> Self {
        self.retained = Some(namespaces);
        self
    }

    /// Creates a lab within the time `within`: first the namespace, then the Secret with the request and the quota, then
    /// everything else in parallel, and last the pod, because the quota has to count it. An object that exists already
    /// and does not belong to the spawn whose record has `spawn_uid` is left alone, and the creation fails. The creation
    /// also fails if a volume claim belongs to another user. The namespace with the uid `kept_namespace` was made for an
    /// earlier lab of the server and is used again if it is like the one of `objects`.
    pub async fn create_lab(
        &self,
        objects: &LabObjects,
        spawn_uid: &str,
        kept_namespace: Option<&str>,
        within: Duration,
        cancel: CancellationToken,
        notes: &CreationNotes<'_>,
    ) -> Result<CreatedLab, KubernetesError> {
        let retry_policy = RetryPolicy { request: self.request_timeout, total: within, cancel };
        let spawn = Spawn { uid: spawn_uid, kept_namespace, notes };
        let (namespace, inside) = self.create_most(objects, spawn, &retry_policy).await?;
        self.check_claims_of_the_site(objects, &retry_policy, notes).await?;
        let pod = LabObject::from(objects.last().clone());
        let pod = self.create_object(&pod, spawn, &retry_policy, inside.as_ref()).await?;
        if let Some(quota) = &objects.resource_quota {
            QuotaCount::from_quota(quota, &self.client, &retry_policy).includes_pod().await?;
        }
        Ok(CreatedLab { namespace, pod: parse(pod)? })
    }

    /// Creates the objects of a lab that has no pod of its own.
    pub async fn create_beside_pod(
        &self,
        objects: &LabObjects,
        spawn_uid: &str,
        within: Duration,
        cancel: CancellationToken,
    ) -> Result<(), KubernetesError> {
        let retry_policy = RetryPolicy { request: self.request_timeout, total: within, cancel };
        let spawn = Spawn::without_claims(spawn_uid);
        self.create_most(objects, spawn, &retry_policy).await.map(drop)
    }

    /// Creates all objects except the pod. Returns the namespace if it is among them.
    async fn create_most(
        &self,
        objects: &LabObjects,
        spawn: Spawn<'_>,
        retry_policy: &RetryPolicy,
    ) -> Result<(Option<Namespace>, Option<Inside>), KubernetesError> {
        let namespace = match objects.first() {
            Some(namespace) => Some(parse(self.create_object(namespace, spawn, retry_policy, None).await?)?),
            None => None,
        };
        let inside = self.inside(namespace.as_ref());
        // Another process can go on with the spawn as soon as the Secret exists. The quota comes early, so that the API
        // server usually knows it by the time the pod is created.
        let (early, rest): (Vec<_>, Vec<_>) = objects
            .rest()
            .partition(|object| matches!(object, LabObject::ResourceQuota(_)) || object.has_request());
        for objects in [early, rest] {
            // Waits for all of them even if one fails, so that no request is still under way when the lab is deleted
            // again.
            let created = join_all(
                objects.iter().map(|object| self.create_object(object, spawn, retry_policy, inside.as_ref())),
            );
            created.await.into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        Ok((namespace, inside))
    }

    /// Creates one more pod of a spawn whose other objects exist.
    pub async fn create_pod(
        &self,
        pod: Pod,
        spawn_uid: &str,
        within: Duration,
        cancel: CancellationToken,
    ) -> Result<Pod, KubernetesError> {
        let retry_policy = RetryPolicy { request: self.request_timeout, total: within, cancel };
        let spawn = Spawn::without_claims(spawn_uid);
        parse(self.create_object(&LabObject::from(pod), spawn, &retry_policy, None).await?)
    }

    /// Returns the Secret of this name if it belongs to the spawn. The service may not read Secrets where labs are; a patch
    /// that changes nothing returns them, too.
    pub async fn own_secret(
        &self,
        namespace: &str,
        name: &str,
        spawn_uid: &str,
        within: Duration,
    ) -> Result<Option<Secret>, KubernetesError> {
        let retry_policy =
            RetryPolicy { request: self.request_timeout, total: within, cancel: CancellationToken::new() };
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let action = format!("read Secret {name}");
        let own = [(SPAWN_LABEL, Some(spawn_uid))];
        match read_by_patch(&secrets, name, own, &retry_policy, &action).await {
            Ok(secret) => Ok(Some(secret)),
            Err(KubernetesError::Refused {
                reason: StatusReason::Invalid | StatusReason::NotFound, ..
            }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the namespace with its uid, or `None` if it is not known.
    fn inside(&self, namespace: Option<&Namespace>) -> Option<Inside> {
        let metadata = &namespace?.metadata;
        let (name, uid) = (metadata.name.clone()?, metadata.uid.clone()?);
        Some(Inside { namespaces: Api::all(self.client.clone()), name, uid })
    }

    /// Reads the records of the namespaces that are the service's.
    pub async fn load(&self) -> Result<(), KubernetesError> {
        match &self.retained {
            Some(retained) => retained.load(&Api::all(self.client.clone()), self.request_timeout).await,
            None => Ok(()),
        }
    }

    /// Checks the owners of claims that exist already, and waits for those that are being deleted: no pod that uses them
    /// would be scheduled. A namespace that is made for the lab has no claims.
    async fn check_claims_of_the_site(
        &self,
        objects: &LabObjects,
        retry_policy: &RetryPolicy,
        notes: &CreationNotes<'_>,
    ) -> Result<(), KubernetesError> {
        if let Some(LabObject::Namespace(_)) = objects.first() {
            return Ok(());
        }
        let namespace = objects.pod.metadata.namespace.as_deref().unwrap_or_default();
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        let checks = objects.claims_of_the_site().map(async |name| {
            let action = format!("read PersistentVolumeClaim {name}");
            let (wait, deadline) = (ClaimWait::new(name, notes), Instant::now() + retry_policy.total);
            loop {
                let found = retrying(retry_policy, &action, || claims.get_metadata_opt(name)).await?;
                // A missing claim is no error: the pod waits for it.
                let needed = match &found {
                    Some(claim) => {
                        refuse_claim_of_another(&claim.metadata, &objects.pod.metadata)?;
                        wait.is_needed(&claim.metadata)
                    }
                    None => false,
                };
                if !needed {
                    wait.over();
                    return Ok(());
                }
                if Instant::now() >= deadline {
                    return Err(wait.in_vain());
                }
                retry_policy.pause(PAUSE).await?;
            }
        });
        try_join_all(checks).await.map(drop)
    }

    async fn create_object(
        &self,
        object: &LabObject,
        spawn: Spawn<'_>,
        retry_policy: &RetryPolicy,
        inside: Option<&Inside>,
    ) -> Result<DynamicObject, KubernetesError> {
        let resource = api_resource(&object.object_kind());
        let api = match &object.metadata().namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let creation = Creation {
            api,
            object: dynamic(object.to_value())?,
            kind: object.object_kind(),
            action: format!("create {} {}", object.kind(), object.name()),
            retry_policy,
            inside,
        };
        match object {
            LabObject::Namespace(_) => {
                let same = |found: &DynamicObject, wanted: &DynamicObject| {
                    let is_kept =
                        spawn.kept_namespace.is_some_and(|uid| found.metadata.uid.as_deref() == Some(uid));
                    same_job(found, wanted) || is_kept && kept_as(found) == kept_as(wanted)
                };
                creation.create_own(spawn.uid, same).await
            }
            LabObject::Pod(_) => creation.create_own(spawn.uid, same_job).await,
            LabObject::RetainedNamespace(_) => creation.create_to_stay(self.retained.as_ref()).await,
            LabObject::PersistentVolumeClaim(wanted) => {
                let claim = creation.create_or_keep(spawn.notes).await?;
                refuse_claim_of_another(&claim.metadata, &wanted.metadata)?;
                creation.enlarge(&claim, wanted, spawn.notes).await?;
                Ok(claim)
            }
            LabObject::ResourceQuota(wanted) => {
                let created = creation.create_own_unread(spawn.uid).await?;
                QuotaCount::from_quota(wanted, &self.client, retry_policy).begun().await?;
                Ok(created)
            }
            _ => creation.create_own_unread(spawn.uid).await,
        }
    }
}

/// The objects of a new lab, as the API server returned them.
#[derive(Debug)]
pub struct CreatedLab {
    /// The namespace. `None` if the service was not to create one.
    pub namespace: Option<Namespace>,
    /// The pod.
    pub pod: Pod,
}

/// The spawn that objects are created for.
#[derive(Clone, Copy)]
struct Spawn<'a> {
    /// The uid of its record.
    uid: &'a str,
    /// The uid of the namespace of an earlier lab that it may have.
    kept_namespace: Option<&'a str>,
    notes: &'a CreationNotes<'a>,
}

impl<'a> Spawn<'a> {
    /// A spawn without volume claims and without a namespace of its own.
    fn without_claims(uid: &'a str) -> Self {
        Self { uid, kept_namespace: None, notes: &CreationNotes::NONE }
    }
}

/// An object that is to be created.
struct Creation<'a> {
    api: Api<DynamicObject>,
    object: DynamicObject,
    kind: ObjectKind,
    /// The description of the request in errors and the log.
    action: String,
    retry_policy: &'a RetryPolicy,
    /// The namespace of the object, if its uid is known.
    inside: Option<&'a Inside>,
}

/// A namespace in which objects are created.
struct Inside {
    namespaces: Api<Namespace>,
    name: String,
    uid: String,
}

impl Creation<'_> {
    /// Creates an object that must belong to the spawn. An existing object of the spawn is returned, because the answer
    /// to an earlier attempt was lost. An existing object of anybody else is an error.
    async fn create_own(
        &self,
        spawn_uid: &str,
        is_same: impl Fn(&DynamicObject, &DynamicObject) -> bool,
    ) -> Result<DynamicObject, KubernetesError> {
        self.create_or(|found| {
            if !belongs_to(&found.metadata, spawn_uid) {
                return Err(self.taken());
            }
            // An object of an earlier spawn of the lab is being deleted, and must be gone first.
            Ok(found.metadata.deletion_timestamp.is_none() && is_same(found, &self.object))
        })
        .await
    }

    /// Creates a retained namespace. An existing one is used if the service has made it or the operator names it.
    async fn create_to_stay(
        &self,
        retained: Option<&RetainedNamespaces>,
    ) -> Result<DynamicObject, KubernetesError> {
        let Some(retained) = retained else { return Err(self.taken()) };
        if retained.is_named_by_operator(self.name()) {
            let namespace = self.find_or_create().await?;
            // Labs stay in this namespace when the configuration names another one.
            retained.remember(self.name(), &namespace).await?;
            return Ok(namespace);
        }
        let mut turn = retained.turn(self.name()).await?;
        let may_keep = |turn: &Turn<'_>, found: &DynamicObject| {
            if !turn.has_made(found) {
                return Err(KubernetesError::ForeignNamespace { name: self.name().to_owned() });
            }
            // Objects for a namespace that is being deleted could end up in another one of the same name.
            Ok(found.metadata.deletion_timestamp.is_none())
        };
        if matches!(turn.made, Made::Done(_)) {
            if let Some(found) = self.kept_or_gone(|found| may_keep(&turn, found)).await? {
                return Ok(found);
            }
            turn.begin().await?;
        }
        let marked = self.with(turn.marked(self.object.clone()));
        let namespace = marked.create_or(|found| may_keep(&turn, found)).await?;
        turn.done(&namespace).await?;
        Ok(namespace)
    }

    /// Returns the existing object, no matter who made it, or creates it.
    async fn find_or_create(&self) -> Result<DynamicObject, KubernetesError> {
        loop {
            if let Some(found) = self.read().await? {
                return Ok(found);
            }
            if let Some(created) = self.create().await? {
                return Ok(created);
            }
        }
    }

    /// Returns the existing object if `may_keep` accepts it. Otherwise waits until it is gone and returns `None`.
    async fn kept_or_gone(
        &self,
        may_keep: impl Fn(&DynamicObject) -> Result<bool, KubernetesError>,
    ) -> Result<Option<DynamicObject>, KubernetesError> {
        let deadline = Instant::now() + self.retry_policy.total;
        while let Some(found) = self.read().await? {
            if may_keep(&found)? {
                return Ok(Some(found));
            }
            if Instant::now() >= deadline {
                return Err(KubernetesError::StillBeingDeleted { action: self.action.clone() });
            }
            self.retry_policy.pause(PAUSE).await?;
        }
        Ok(None)
    }

    /// Like `create_own`, for kinds that the service may not read, such as Secrets. A JSON patch that tests the labels
    /// and changes nothing checks whether an existing object belongs to the spawn, and not to an earlier one of the lab.
    async fn create_own_unread(&self, spawn_uid: &str) -> Result<DynamicObject, KubernetesError> {
        if let Some(created) = self.create().await? {
            return Ok(created);
        }
        let job = self.object.metadata.labels.as_ref().and_then(|labels| labels.get(JOB_ID_LABEL));
        let own = [(SPAWN_LABEL, Some(spawn_uid)), (JOB_ID_LABEL, job.map(String::as_str))];
        match read_by_patch(&self.api, self.name(), own, self.retry_policy, &self.action).await {
            Err(KubernetesError::Refused { reason: StatusReason::Invalid, .. }) => Err(self.taken()),
            answer => answer,
        }
    }

    /// Creates a claim, or leaves the existing one alone. If the existing one is being deleted, waits and creates a new
    /// one.
    async fn create_or_keep(&self, notes: &CreationNotes<'_>) -> Result<DynamicObject, KubernetesError> {
        let wait = ClaimWait::new(self.name(), notes);
        let claim = self.create_or(|found| Ok(!wait.is_needed(&found.metadata))).await;
        let claim = claim.map_err(|error| match error {
            KubernetesError::StillBeingDeleted { .. } => wait.in_vain(),
            error => error,
        })?;
        wait.over();
        Ok(claim)
    }

    /// Enlarges an existing claim that is smaller than the wanted one. Only the API server knows whether its storage
    /// class allows that. A claim that keeps its size is no reason to fail.
    async fn enlarge(
        &self,
        claim: &DynamicObject,
        wanted: &PersistentVolumeClaim,
        notes: &CreationNotes<'_>,
    ) -> Result<(), KubernetesError> {
        let found: PersistentVolumeClaim = parse(claim.clone())?;
        let Some(growth) = Growth::needed(&found, wanted) else { return Ok(()) };
        if let Some(obstacle) = growth.obstacle {
            notes.not_grown(growth, obstacle.to_owned());
            return Ok(());
        }
        let size = "/spec/resources/requests/storage";
        let patch = json_patch(json!([
            { "op": "test", "path": "/metadata/uid", "value": found.metadata.uid },
            { "op": "test", "path": size, "value": growth.from },
            { "op": "replace", "path": size, "value": growth.to },
        ]))?;
        let policy =
            RetryPolicy { total: ENLARGE_WITHIN.min(self.retry_policy.total), ..self.retry_policy.clone() };
        let (action, params) =
            (format!("enlarge PersistentVolumeClaim {}", self.name()), PatchParams::default());
        match retrying(&policy, &action, || self.api.patch(self.name(), &params, &patch)).await {
            Ok(_) => notes.grows(growth),
            Err(KubernetesError::Cancelled) => return Err(KubernetesError::Cancelled),
            Err(error) => notes.not_grown(growth, obstacle(&error)),
        }
        Ok(())
    }

    /// Creates an object, or returns the existing one if `may_keep` accepts it. An existing object that is not accepted
    /// is being deleted, and the new one is created once it is gone.
    async fn create_or(
        &self,
        may_keep: impl Fn(&DynamicObject) -> Result<bool, KubernetesError>,
    ) -> Result<DynamicObject, KubernetesError> {
        loop {
            if let Some(created) = self.create().await? {
                return Ok(created);
            }
            if let Some(found) = self.kept_or_gone(&may_keep).await? {
                return Ok(found);
            }
        }
    }

    /// Creates an object. If an object of this name exists already, leaves it unchanged and returns `None`.
    async fn create(&self) -> Result<Option<DynamicObject>, KubernetesError> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let again = AtomicBool::new(false);
        let created = || async {
            if again.swap(true, Ordering::Relaxed) {
                self.check_namespace().await?;
            }
            self.api.create(&params, &self.object).await
        };
        match retrying(self.retry_policy, &self.action, created).await {
            Err(KubernetesError::Refused { reason: StatusReason::AlreadyExists, .. }) => Ok(None),
            Err(KubernetesError::Refused { message, .. }) if says_no_such_kind(&message) => {
                Err(KubernetesError::NoSuchKind { kind: self.kind.kind, group: self.kind.group })
            }
            answer => answer.map(Some),
        }
    }

    /// Fails if somebody has replaced the namespace by another one of the same name since the first attempt.
    async fn check_namespace(&self) -> kube::Result<()> {
        let Some(Inside { namespaces, name, uid }) = self.inside else { return Ok(()) };
        let found = namespaces.get_metadata(name).await?;
        if found.metadata.uid.as_ref() == Some(uid) {
            return Ok(());
        }
        let message = format!("the namespace {name} has been replaced by another one");
        Err(kube::Error::Api(Status::failure(&message, "NamespaceReplaced").with_code(409).boxed()))
    }

    async fn read(&self) -> Result<Option<DynamicObject>, KubernetesError> {
        let read = || self.api.get_opt(self.name());
        retrying(self.retry_policy, &self.action, read).await
    }

    /// Returns the creation of `object` in place of this one.
    fn with(&self, object: DynamicObject) -> Self {
        Self { api: self.api.clone(), kind: self.kind, action: self.action.clone(), object, ..*self }
    }

    fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    fn taken(&self) -> KubernetesError {
        KubernetesError::Taken { kind: self.kind.kind, name: self.name().to_owned() }
    }
}

/// Returns the JSON patch with these operations.
fn json_patch(operations: Value) -> Result<Patch<Value>, KubernetesError> {
    let patch = serde_json::from_value(operations);
    patch.map(Patch::Json).map_err(|error| KubernetesError::Malformed(Box::new(error)))
}

/// Reads an object by a JSON patch that tests its labels and changes nothing. Kubernetes refuses it as `Invalid` for an
/// object with other labels.
async fn read_by_patch<K: Clone + DeserializeOwned + Debug>(
    api: &Api<K>,
    name: &str,
    labels: impl IntoIterator<Item = (&'static str, Option<&str>)>,
    retry_policy: &RetryPolicy,
    action: &str,
) -> Result<K, KubernetesError> {
    let pointer = |label: &str| format!("/metadata/labels/{}", label.replace('/', "~1"));
    let test = |(label, value)| Some(json!({ "op": "test", "path": pointer(label), "value": value? }));
    let patch = json_patch(labels.into_iter().filter_map(test).collect())?;
    let params = PatchParams::default();
    retrying(retry_policy, action, || api.patch(name, &params, &patch)).await
}

/// True if the object's label names the spawn whose record has this uid.
pub fn belongs_to(metadata: &ObjectMeta, spawn_uid: &str) -> bool {
    let label = metadata.labels.as_ref().and_then(|labels| labels.get(SPAWN_LABEL));
    !spawn_uid.is_empty() && label.is_some_and(|label| label == spawn_uid)
}

/// Fails if the claim belongs to a different user than the lab. `lab` is the metadata of one of the lab's objects.
fn refuse_claim_of_another(claim: &ObjectMeta, lab: &ObjectMeta) -> Result<(), KubernetesError> {
    match other_owner(claim, lab) {
        None => Ok(()),
        Some(owner) => Err(KubernetesError::ClaimOfAnother {
            name: claim.name.clone().unwrap_or_default(),
            owner: owner.to_owned(),
        }),
    }
}

/// True if the same spawn made both objects.
fn same_job(one: &DynamicObject, other: &DynamicObject) -> bool {
    let job = |object: &DynamicObject| object.metadata.labels.as_ref()?.get(JOB_ID_LABEL).cloned();
    job(one) == job(other)
}

/// The digest by which a kept namespace is compared with the one that a lab needs.
fn kept_as(namespace: &DynamicObject) -> Option<&String> {
    namespace.metadata.annotations.as_ref()?.get(KEPT_ANNOTATION)
}

fn parse<K: Resource + DeserializeOwned>(object: DynamicObject) -> Result<K, KubernetesError> {
    object.try_parse().map_err(|error| KubernetesError::Malformed(Box::new(error)))
}

fn dynamic(value: serde_json::Value) -> Result<DynamicObject, KubernetesError> {
    serde_json::from_value(value).map_err(|error| KubernetesError::Malformed(Box::new(error)))
}

/// The API resource of a kind.
pub(super) fn api_resource(kind: &ObjectKind) -> ApiResource {
    let ObjectKind { group, version, kind, plural } = kind;
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

#[cfg(test)]
mod tests {
    use wasmspawner_core::manifest::KINDS_DELETED_BY_LABEL;

    use super::*;

    #[test]
    fn the_resource_name_of_an_object_is_that_of_kubernetes() {
        for (version, kind, plural) in [
            ("v1", "ConfigMap", "configmaps"),
            ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
            ("v1", "ResourceQuota", "resourcequotas"),
        ] {
            let kind = KINDS_DELETED_BY_LABEL.iter().find(|known| known.kind == kind).unwrap();
            let resource = api_resource(kind);
            assert_eq!((resource.plural.as_str(), resource.api_version.as_str()), (plural, version));
        }
    }
}
