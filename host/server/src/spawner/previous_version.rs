//! Gives records to labs that an earlier version, which had no records, has left running. It runs once, when the
//! service starts.
//!
//! Version 0.1.0 before its records described a lab in an annotation of the `ConfigMap` of the lab's environment.
//! Nothing else reads that annotation any more. **This file can be deleted, with its call in `service.rs`, its test
//! (`tests/tests/api/previous_version.rs`) and the verb `patch` of pods and namespaces in
//! `deploy/permissions/cluster-wide.yaml`, in
//! the version after the first one with records**: by then every lab has one.
//!
//! First the record is written, then the objects are labelled with its uid, and the `ConfigMap` is labelled last. As
//! long as it has no label, the next start continues where this one was interrupted.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasmspawner_core::identity::Group;
use wasmspawner_core::lab::{JobId, LabKey};
use wasmspawner_core::labels::{
    COMPONENT_LABEL, ENVIRONMENT, INSTANCE_LABEL, JOB_ID_LABEL, MANAGED_BY_LABEL, MANAGED_BY_VALUE,
    SPAWN_LABEL,
};
use wasmspawner_core::lifecycle::{
    Lab, Operation, OperationKind, Phase, Restarts, Running, SpawnStep, Starting,
};
use wasmspawner_core::manifest::{self, lab_key};
use wasmspawner_core::names::{LabNames, ServerName};
use wasmspawner_core::policy::{Image, Options};
use wasmspawner_core::record::{
    Desired, LabDescription, OperationSpec, Place, PolicyRef, Quotas, SpawnSpec, SpawnStatus,
};
use wasmspawner_core::spawn_key::{SpawnKey, SpawnKind};

use super::context::Context;
use super::requests::TRY_FOR;
use crate::k8s::{Causes, KubernetesError, RetryPolicy, StatusReason, list, retrying};
use crate::records::{RecordError, StoredSpawn, soon};

/// The annotation, on the `ConfigMap` of the lab's environment, in which that version described the lab.
const ANNOTATION: &str = "wasmspawner.io/lab";
/// How many labs are adopted at the same time.
const AT_ONCE: usize = 16;

/// The content of the annotation.
#[derive(Debug, Deserialize)]
struct Written {
    job_id: JobId,
    started_at: Timestamp,
    deadline: Timestamp,
    pod: String,
    #[serde(default)]
    elsewhere: BTreeMap<String, String>,
    #[serde(default)]
    options: Options,
    uid: u32,
    gid: u32,
    #[serde(default)]
    groups: Vec<Group>,
    quotas: Option<Quotas>,
    image: Option<Image>,
    #[serde(default)]
    policy: Vec<PolicyRef>,
}

/// A `ConfigMap` whose labels name a lab, and whose place and name are those that the lab's own would have.
struct Candidate {
    key: LabKey,
    names: LabNames,
    written: Written,
    env: ConfigMap,
}

/// Why a `ConfigMap` that looks like a lab's is left alone.
#[derive(Debug, thiserror::Error)]
enum SkipReason {
    #[error("its annotation cannot be read: {0}")]
    Unreadable(String),
    #[error("it is not in the place of the lab that it names")]
    Elsewhere,
    #[error("its labels are not those of the lab that it names")]
    OtherLabels,
    #[error("the lab that it names has no pod of that spawn")]
    NoPod,
    #[error("the namespace is not the lab's own")]
    OtherNamespace,
    #[error("there is a record of another spawn of that lab")]
    OtherRecord,
    #[error(
        "the service may not label the lab's pod: {0}; apply deploy/permissions/cluster-wide.yaml and restart it"
    )]
    Refused(String),
}

/// Why a lab was not adopted.
enum AdoptError {
    SkipReason(SkipReason),
    /// The cluster did not answer or refused; the adoption is tried again.
    Cluster(KubernetesError),
}

/// Adopts all such labs. If the cluster fails it returns an error, and can be called again.
pub(super) async fn adopt_all(context: &Context) -> Result<(), KubernetesError> {
    let service = manifest::service_selector(&context.config.current().kubernetes.instance());
    let maps: Api<ConfigMap> = context.reach().all(context.own_cluster().connection.requests.clone());
    let selector = format!("{service},!{SPAWN_LABEL}");
    let found = list(&maps, &selector, "list the labs of an earlier version").await?;
    let annotated = found.into_iter().filter(|map| annotation(map).is_some());
    stream::iter(annotated).map(Ok).try_for_each_concurrent(AT_ONCE, |map| adopt_or_log(context, map)).await
}

async fn adopt_or_log(context: &Context, map: ConfigMap) -> Result<(), KubernetesError> {
    let (namespace, name) = (map.metadata.namespace.clone(), map.metadata.name.clone());
    match Box::pin(adopt_one(context, map)).await {
        Ok(key) => {
            tracing::info!(user = %key.user, server = %key.server, "a lab of an earlier version is adopted");
            Ok(())
        }
        Err(AdoptError::Cluster(error)) => Err(error),
        Err(AdoptError::SkipReason(why)) => {
            tracing::warn!(?namespace, ?name, %why, "a ConfigMap claims to belong to a lab of an earlier version; it is left alone");
            Ok(())
        }
    }
}

async fn adopt_one(context: &Context, map: ConfigMap) -> Result<LabKey, AdoptError> {
    let candidate = Candidate::of(context, map)?;
    let record = SpawnKey::from(candidate.key.clone()).object_name();
    let known = match context.records.get(&record).await {
        Ok(known) => known,
        Err(RecordError::Kubernetes(error)) => return Err(error.into()),
        Err(_) => return Err(SkipReason::OtherRecord.into()),
    };
    let (pod, namespace) = context.own_cluster().deleter.read(&candidate.place(), TRY_FOR).await?;
    let own_namespace = context.config.current().kubernetes.namespaces.is_deleted();
    let spawn = known.as_ref().map(|known| known.uid.clone());
    let ours = |meta: &ObjectMeta| {
        let labelled = label(meta, SPAWN_LABEL);
        candidate.owns(context, meta) && (labelled.is_none() || labelled == spawn.as_deref())
    };
    let pod = pod.filter(|pod| ours(&pod.metadata));
    let owned = namespace.filter(|namespace| own_namespace && ours(&namespace.metadata));
    let stored = match known {
        // An earlier start was interrupted after it had written the record. If objects are missing now, the record's
        // driver cleans up.
        Some(stored) if candidate.is_recorded_in(&stored) => stored,
        Some(_) => return Err(SkipReason::OtherRecord.into()),
        None => {
            let pod = pod.as_ref().ok_or(SkipReason::NoPod)?;
            if own_namespace && owned.is_none() {
                return Err(SkipReason::OtherNamespace.into());
            }
            candidate.write_record(context, pod).await?
        }
    };
    candidate.label(context, &stored, pod, owned).await?;
    Ok(candidate.key)
}

impl Candidate {
    /// Checks the annotation and the labels, which anybody may have written: the objects that they name must be where
    /// the configuration puts them.
    fn of(context: &Context, env: ConfigMap) -> Result<Self, SkipReason> {
        let text = annotation(&env).unwrap_or_default();
        let written: Written =
            serde_json::from_str(text).map_err(|error| SkipReason::Unreadable(error.to_string()))?;
        let key = lab_key(&env.metadata).ok_or(SkipReason::OtherLabels)?;
        let names = context.names(&key).map_err(|_| SkipReason::Elsewhere)?;
        let stands = (env.metadata.namespace.as_deref(), env.metadata.name.as_deref());
        let belongs = (Some(names.namespace.as_str()), Some(names.env.as_str()));
        if stands != belongs || written.pod != names.pod.as_str() {
            return Err(SkipReason::Elsewhere);
        }
        let candidate = Self { key, names, written, env };
        if !candidate.owns(context, &candidate.env.metadata) {
            return Err(SkipReason::OtherLabels);
        }
        Ok(candidate)
    }

    fn place(&self) -> Place {
        Place::of(&self.names)
    }

    /// True if the object's labels name this spawn and this installation of the service.
    fn owns(&self, context: &Context, metadata: &ObjectMeta) -> bool {
        let is = |key: &str, value: &str| label(metadata, key) == Some(value);
        is(MANAGED_BY_LABEL, MANAGED_BY_VALUE)
            && is(INSTANCE_LABEL, context.config.current().kubernetes.instance().as_str())
            && is(JOB_ID_LABEL, &self.written.job_id.to_string())
            && lab_key(metadata).as_ref() == Some(&self.key)
    }

    fn is_recorded_in(&self, stored: &StoredSpawn) -> bool {
        let spec = &stored.spec;
        spec.key() == Some(self.key.clone().into())
            && spec.operation.id == self.written.job_id
            && spec.place == self.place()
    }

    async fn write_record(&self, context: &Context, pod: &Pod) -> Result<StoredSpawn, AdoptError> {
        let (spec, status) = self.record(context, pod);
        let name = SpawnKey::from(self.key.clone()).object_name();
        match context.records.create(&name, &spec, &status, soon()).await {
            Ok(stored) => Ok(stored),
            Err(RecordError::Kubernetes(error)) => Err(error.into()),
            Err(_) => Err(SkipReason::OtherRecord.into()),
        }
    }

    /// The content of the lab's record. If the pod exists after the spawn's time limit, the lab was ready at some time:
    /// otherwise that version would have removed it.
    fn record(&self, context: &Context, pod: &Pod) -> (SpawnSpec, SpawnStatus) {
        let Written { job_id, started_at, deadline, .. } = self.written;
        let limits = context.time_limits();
        let operation = Operation { job_id, kind: OperationKind::Spawn, started_at, deadline };
        let outlived = (context.now() > deadline).then_some(deadline);
        let mut lab = Lab::absent(limits);
        lab.operation = Some(operation);
        lab.phase = match ready_since(pod).or(outlived) {
            Some(ready_at) => {
                let (pod_uid, restarts) = (pod.metadata.uid.clone(), Restarts::default());
                Phase::Running(Running { ready_at, pod_uid, restarts })
            }
            None => Phase::Starting(Starting { step: SpawnStep::Waiting, overdue: false }),
        };
        let spec = SpawnSpec {
            kind: SpawnKind::Lab,
            user: self.key.user.clone(),
            name: self.key.server.clone(),
            server: ServerName::default(),
            parent: None,
            desired: Desired::Running,
            operation: OperationSpec::of(&operation, None),
            place: self.place(),
            remains: Vec::new(),
            time_limits: limits.into(),
            lab: self.description().into(),
        };
        (spec, SpawnStatus::of(&lab))
    }

    fn description(&self) -> LabDescription {
        let Written { options, uid, gid, groups, quotas, image, policy, elsewhere, .. } = &self.written;
        LabDescription {
            foreign_blueprint: None,
            options: options.clone(),
            uid: *uid,
            gid: *gid,
            groups: groups.clone(),
            quotas: *quotas,
            image: image.clone(),
            policies: policy.clone(),
            decided_by: std::collections::BTreeMap::new(),
            hidden_env: elsewhere.clone(),
            kernel: None,
            pool: None,
        }
    }

    /// Labels the objects that the service must find again: the pod, then the namespace (or the objects in a retained
    /// namespace), and last the environment, whose label says that everything is done.
    async fn label(
        &self,
        context: &Context,
        stored: &StoredSpawn,
        pod: Option<Pod>,
        namespace: Option<Namespace>,
    ) -> Result<(), AdoptError> {
        let place = &self.names.namespace;
        let pods: Api<Pod> =
            Api::namespaced(context.own_cluster().connection.requests.clone(), place.as_str());
        let spawn = [(SPAWN_LABEL, stored.uid.as_str())];
        if let Some(pod) = pod.filter(|pod| label(&pod.metadata, SPAWN_LABEL).is_none()) {
            match label_seen(&pods, "Pod", &pod.metadata, &spawn).await {
                Ok(pod) => context.own_cluster().store.put_pod(&pod),
                // Without the label on its pod, the service would conclude that the lab's pod is gone.
                Err(KubernetesError::Refused { reason: StatusReason::Forbidden, message, .. }) => {
                    context.records.delete(stored).await?;
                    return Err(SkipReason::Refused(message).into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(namespace) = namespace {
            let namespaces: Api<Namespace> = Api::all(context.own_cluster().connection.requests.clone());
            let labelled = label_seen(&namespaces, "Namespace", &namespace.metadata, &spawn).await?;
            context.own_cluster().store.put_namespace(&labelled);
        }
        // The lab's own namespace is deleted with everything in it, so only objects in a retained namespace need
        // labels.
        if !context.config.current().kubernetes.namespaces.is_deleted() {
            self.label_unread(context, &stored.uid).await?;
        }
        let maps: Api<ConfigMap> =
            Api::namespaced(context.own_cluster().connection.requests.clone(), place.as_str());
        let labels = [(SPAWN_LABEL, stored.uid.as_str()), (COMPONENT_LABEL, ENVIRONMENT)];
        label_seen(&maps, "ConfigMap", &self.env.metadata, &labels).await?;
        Ok(())
    }

    /// Labels the lab's other objects in a retained namespace. The service may not read these kinds, such as
    /// Secrets, so the JSON patch tests whether the object belongs to this spawn.
    async fn label_unread(&self, context: &Context, spawn: &str) -> Result<(), KubernetesError> {
        let names = &self.names;
        let rest = [
            ("", "ServiceAccount", &names.service_account),
            ("", "ConfigMap", &names.nss),
            ("", "Secret", &names.object),
            ("", "Secret", &names.pull_secret),
            ("", "ResourceQuota", &names.object),
            ("", "LimitRange", &names.object),
            ("networking.k8s.io", "NetworkPolicy", &names.object),
        ];
        let pointer = |label: &str| format!("/metadata/labels/{}", label.replace('/', "~1"));
        let instance = context.config.current().kubernetes.instance();
        let patch = json!([
            { "op": "test", "path": pointer(INSTANCE_LABEL), "value": instance },
            { "op": "test", "path": pointer(JOB_ID_LABEL), "value": self.written.job_id },
            { "op": "add", "path": pointer(SPAWN_LABEL), "value": spawn },
        ]);
        let patch =
            serde_json::from_value(patch).map_err(|error| KubernetesError::Malformed(Box::new(error)))?;
        let patch = Patch::<Value>::Json(patch);
        for (group, kind, name) in rest {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
            let api: Api<DynamicObject> = Api::namespaced_with(
                context.own_cluster().connection.requests.clone(),
                names.namespace.as_str(),
                &resource,
            );
            let (action, params) = (format!("label {kind} {name}"), PatchParams::default());
            let retry_policy = RetryPolicy::of(TRY_FOR, TRY_FOR);
            match retrying(&retry_policy, &action, || api.patch(name.as_str(), &params, &patch)).await {
                // Not every lab has all of these objects.
                Ok(_) | Err(KubernetesError::Refused { reason: StatusReason::NotFound, .. }) => {}
                Err(error @ KubernetesError::Refused { .. }) => {
                    tracing::warn!(kind, %name, error = %Causes(&error), "an object in a lab's place is not labelled, and stays when the lab is stopped");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Labels the object that was read, and no other of its name. If it has changed meanwhile, the result is a conflict,
/// and the caller reads it again.
async fn label_seen<K>(
    api: &Api<K>,
    kind: &str,
    seen: &ObjectMeta,
    labels: &[(&str, &str)],
) -> Result<K, KubernetesError>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let name = seen.name.as_deref().unwrap_or_default();
    let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
    let metadata = json!({ "uid": seen.uid, "resourceVersion": seen.resource_version, "labels": labels });
    let (params, patch) = (PatchParams::default(), Patch::Merge(json!({ "metadata": metadata })));
    let action = format!("label {kind} {name}");
    retrying(&RetryPolicy::of(TRY_FOR, TRY_FOR), &action, || api.patch(name, &params, &patch)).await
}

fn annotation(map: &ConfigMap) -> Option<&str> {
    map.metadata.annotations.as_ref()?.get(ANNOTATION).map(String::as_str)
}

fn label<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// Since when the pod is ready; `None` if it is not.
fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready =
        conditions.iter().find(|condition| condition.type_ == "Ready" && condition.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

impl From<SkipReason> for AdoptError {
    fn from(why: SkipReason) -> Self {
        Self::SkipReason(why)
    }
}

impl From<KubernetesError> for AdoptError {
    fn from(error: KubernetesError) -> Self {
        Self::Cluster(error)
    }
}
