//! The records of labs: `Spawn` objects in the service's own namespace.

mod definition;
mod error;
mod stored;
mod watching;

pub use error::{DefinitionError, NotInstalled, RecordError};
pub use stored::{ListedRecord, StoredSpawn, UnreadableRecord};
pub use watching::RecordChange;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use tokio::time::Instant;
use wasmspawner_core::names::{LabelValue, ObjectName};
use wasmspawner_core::record::{self, Desired, INSTANCE_LABEL, SpawnSpec, SpawnStatus};

use crate::k8s::{KubernetesError, RetryPolicy, StatusReason, list_some, retrying};
use crate::leadership::Leadership;

/// The time limit for writing a record. The user who requests a lab waits for it.
pub const TRY_FOR: Duration = Duration::from_secs(10);

/// The field manager of everything that this service writes.
const FIELD_MANAGER: &str = "wasmspawner";

/// Reads and writes records.
#[derive(Clone)]
pub struct SpawnRecords {
    api: Api<DynamicObject>,
    instance: LabelValue,
    request_timeout: Duration,
    /// The fields that the log says the API server does not keep.
    told: Arc<Mutex<BTreeSet<String>>>,
    leadership: Leadership,
}

/// The records of an installation.
#[derive(Debug)]
pub struct Listed<T> {
    /// Those that can be read, or what was taken from them.
    pub read: Vec<T>,
    /// Those that cannot be read.
    pub unreadable: Vec<UnreadableRecord>,
}

impl<T> Listed<T> {
    fn from_results(results: Vec<Result<T, UnreadableRecord>>) -> Self {
        let (mut read, mut unreadable) = (Vec::with_capacity(results.len()), Vec::new());
        for result in results {
            match result {
                Ok(one) => read.push(one),
                Err(other) => unreadable.push(other),
            }
        }
        Self { read, unreadable }
    }
}

impl SpawnRecords {
    /// The records of one installation of the service (`instance`), in `namespace`, as they are written by the process
    /// with this leadership.
    pub fn new(
        client: Client,
        namespace: &str,
        instance: LabelValue,
        request_timeout: Duration,
        leadership: Leadership,
    ) -> Self {
        let api = Api::namespaced_with(client, namespace, &resource());
        Self { api, instance, request_timeout, told: Arc::default(), leadership }
    }

    /// The leadership of the process that writes these records.
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// Fails if the custom resource is not installed. Succeeds if the cluster cannot be reached, because later requests
    /// report that.
    pub async fn check_installed(&self) -> Result<(), NotInstalled> {
        match self.api.list(&ListParams::default().limit(1)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Err(NotInstalled),
            _ => Ok(()),
        }
    }

    /// Lists all records of this installation.
    pub async fn list(&self) -> Result<Listed<StoredSpawn>, KubernetesError> {
        let read = |object| Some(StoredSpawn::read(object));
        Ok(Listed::from_results(list_some(&self.api, &self.selector(), "list Spawns", read).await?))
    }

    /// Lists the labs and children that have a record.
    pub async fn keys(&self) -> Result<Listed<ListedRecord>, KubernetesError> {
        let key = |object| Some(StoredSpawn::read_key(object));
        Ok(Listed::from_results(list_some(&self.api, &self.selector(), "list Spawns", key).await?))
    }

    /// Writes the record of an accepted spawn, with retries until `until`. Succeeds if the record exists already with
    /// the same operation, because the answer to an earlier attempt was lost. `Changed` contains a record of the same
    /// lab that an earlier request has left for the same reason.
    pub async fn create(
        &self,
        name: &ObjectName,
        spec: &SpawnSpec,
        status: &SpawnStatus,
        until: Instant,
    ) -> Result<StoredSpawn, RecordError> {
        let object = stored::new_object(
            name.as_str(),
            &self.instance,
            stored::written(&self.numbered(spec), Some(status))?,
        );
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let action = format!("create Spawn {name}");
        match retrying(&self.retry_policy(until), &action, || self.api.create(&params, &object)).await {
            Ok(created) => Ok(self.stored(created, &object)?),
            Err(KubernetesError::Refused { reason: StatusReason::AlreadyExists, .. }) => {
                let found = self.read(name, until).await?.ok_or(RecordError::Gone)?;
                if found.spec.operation.id == spec.operation.id {
                    return Ok(found);
                }
                if self.is_ours(&found) && spec.key().as_ref() == Some(&found.key) {
                    self.require_leadership(&found)?;
                    return Err(RecordError::Changed(Box::new(found)));
                }
                Err(RecordError::Taken { name: name.clone(), user: found.spec.user.to_string() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the content of a record, with retries until `until`. Fails with `Changed` if somebody else has changed
    /// the requested state meanwhile.
    pub async fn save(
        &self,
        stored: &StoredSpawn,
        spec: &SpawnSpec,
        status: &SpawnStatus,
        until: Instant,
    ) -> Result<StoredSpawn, RecordError> {
        let mut current = stored.clone();
        let numbered = self.numbered(spec);
        loop {
            let object = current.with(&numbered, status)?;
            match self.replace(&current, &object, until).await {
                Err(KubernetesError::Refused { reason: StatusReason::Conflict, .. }) => {
                    current = self.read(&stored.name, until).await?.ok_or(RecordError::Gone)?;
                    if current.uid != stored.uid {
                        return Err(RecordError::Gone);
                    }
                    self.require_leadership(&current)?;
                    // Somebody has requested a stop that this service did not know of yet.
                    if current.deleting && !stored.deleting && spec.desired == Desired::Running {
                        return Err(RecordError::Changed(Box::new(current)));
                    }
                    // The conflict comes from our own earlier attempt, whose answer was lost, or from a change to other
                    // fields.
                    let (now, before) = (&current.spec, &stored.spec);
                    let ours = now.operation.id == spec.operation.id && now.desired == spec.desired;
                    let untouched = now.operation.id == before.operation.id && now.desired == before.desired;
                    if !ours && !untouched {
                        return Err(RecordError::Changed(Box::new(current)));
                    }
                }
                Err(KubernetesError::Refused { reason: StatusReason::NotFound, .. }) => {
                    return Err(RecordError::Gone);
                }
                answer => return Ok(self.stored(answer?, &object)?),
            }
        }
    }

    /// Returns the spec with the number of the present leadership.
    fn numbered(&self, spec: &SpawnSpec) -> SpawnSpec {
        SpawnSpec { epoch: self.leadership.epoch(), ..spec.clone() }
    }

    /// Fails if a later leader has written this record: it is not written over.
    fn require_leadership(&self, found: &StoredSpawn) -> Result<(), RecordError> {
        self.leadership.end_if_later(found.spec.epoch);
        if self.leadership.may_change() { Ok(()) } else { Err(RecordError::Superseded) }
    }

    async fn replace(
        &self,
        current: &StoredSpawn,
        object: &DynamicObject,
        until: Instant,
    ) -> Result<DynamicObject, KubernetesError> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let name = current.name.as_str();
        let action = format!("update Spawn {name}");
        retrying(&self.retry_policy(until), &action, || self.api.replace(name, &params, object)).await
    }

    /// Parses the answer to a write of `written`. The log says once which fields the API server does not keep.
    fn stored(&self, answer: DynamicObject, written: &DynamicObject) -> Result<StoredSpawn, KubernetesError> {
        let stored = StoredSpawn::from_answer(answer, written)?;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.dropped.iter().any(|path| !told.contains(path)) {
            told.extend(stored.dropped.iter().cloned());
            let error = DefinitionError::OfAnotherVersion(format!("it drops {}", stored.dropped.join(", ")));
            tracing::error!(record = %stored.name, "{error}");
        }
        Ok(stored)
    }

    /// Deletes the record of a lab that has no objects left, unless a later leader has written it.
    pub async fn delete(&self, stored: &StoredSpawn) -> Result<(), RecordError> {
        let (mut current, until) = (stored.clone(), soon());
        let mut attempts = 0..3;
        loop {
            match self.delete_unchanged(&current, until).await {
                Err(KubernetesError::Refused { reason: StatusReason::NotFound, .. }) => return Ok(()),
                Err(KubernetesError::Refused { reason: StatusReason::Conflict, .. })
                    if attempts.next().is_some() =>
                {
                    let Some(found) = self.read(&stored.name, until).await? else { return Ok(()) };
                    if found.uid != stored.uid {
                        return Ok(());
                    }
                    self.require_leadership(&found)?;
                    current = found;
                }
                answer => return Ok(answer?),
            }
        }
    }

    /// Releases and deletes a record, if nobody has changed it since it was read.
    async fn delete_unchanged(&self, current: &StoredSpawn, until: Instant) -> Result<(), KubernetesError> {
        let (name, action) = (current.name.as_str(), format!("delete Spawn {}", current.name));
        let (uid, version) = (&current.uid, current.resource_version());
        let release = json!({ "metadata": { "finalizers": null, "uid": uid, "resourceVersion": version } });
        let (params, release) = (PatchParams::default(), Patch::Merge(release));
        let retry_policy = self.retry_policy(until);
        let released =
            retrying(&retry_policy, &action, || self.api.patch(name, &params, &release)).await?.metadata;
        let preconditions =
            Preconditions { uid: Some(uid.clone()), resource_version: released.resource_version };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let retry_policy = self.retry_policy(until);
        retrying(&retry_policy, &action, || self.api.delete(name, &params)).await.map(drop)
    }

    /// Reads the record of this name. Returns `None` unless it belongs to this installation.
    pub async fn get(&self, name: &ObjectName) -> Result<Option<StoredSpawn>, RecordError> {
        Ok(self.read(name, soon()).await?.filter(|found| self.is_ours(found)))
    }

    fn is_ours(&self, found: &StoredSpawn) -> bool {
        found.instance.as_deref() == Some(self.instance.as_str())
    }

    async fn read(&self, name: &ObjectName, until: Instant) -> Result<Option<StoredSpawn>, RecordError> {
        let action = format!("read Spawn {name}");
        let found = retrying(&self.retry_policy(until), &action, || self.api.get_opt(name.as_str())).await?;
        Ok(found.map(StoredSpawn::try_read).transpose()?)
    }

    /// Returns a policy in which the time left until `until` limits one request and all attempts.
    fn retry_policy(&self, until: Instant) -> RetryPolicy {
        let left = until.saturating_duration_since(Instant::now());
        RetryPolicy::from_timeouts(self.request_timeout.min(left), left)
    }

    fn selector(&self) -> String {
        format!("{INSTANCE_LABEL}={}", self.instance)
    }
}

/// The deadline of writes that no request waits for.
pub fn soon() -> Instant {
    Instant::now() + TRY_FOR
}

fn resource() -> ApiResource {
    let kind = GroupVersionKind::gvk(record::GROUP, record::VERSION, record::KIND);
    ApiResource::from_gvk_with_plural(&kind, record::PLURAL)
}
