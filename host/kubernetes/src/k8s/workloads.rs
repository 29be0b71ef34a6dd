//! Puts labs into workloads, and takes them out again.

use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, DynamicResourceScope, GroupVersionKind};
use kube::{Client, Resource};
use serde::Deserialize as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::manifest::without_job_label;
use wasmspawner_core::names::labels::JOB_ID_LABEL;
use wasmspawner_core::workload::{
    LabMark, Workload, WorkloadKind, WorkloadObject, is_leftover_revision, leftovers, remainder,
};

use super::list::{list, list_pages};
use super::retry::{RetryPolicy, retrying};
use super::{KubernetesError, StatusReason};
use crate::watches::Readable;

/// The number of revisions on a page of a list. Anybody who writes workloads may make many revisions of a megabyte
/// each.
const REVISIONS_AT_ONCE: u32 = 25;

/// Puts labs into workloads, and takes them out again. Every request names the workload by its uid, so that another
/// workload of the same name stays as it is.
#[derive(Clone)]
pub struct WorkloadRequests {
    client: Client,
    request_timeout: Duration,
}

/// A lab that is put into a workload or taken out of it.
#[derive(Debug, Clone)]
pub struct LabInWorkload {
    /// The workload.
    pub workload: Workload,
    /// The uid of the workload.
    pub uid: String,
    /// The uid of the lab's record.
    pub spawn: String,
    /// The label of every pod with a lab of this installation.
    pub installation_label: String,
}

impl LabInWorkload {
    fn mark(&self) -> LabMark {
        LabMark::from_spawn(&self.spawn)
    }

    /// The field manager of the lab. People see it in the metadata of the workload.
    fn manager(&self) -> String {
        format!("wasmspawner-{}", self.spawn)
    }
}

impl WorkloadRequests {
    /// Creates a `WorkloadRequests` for `client`. Each request may take `request_timeout`.
    pub fn new(client: Client, request_timeout: Duration) -> Self {
        Self { client, request_timeout }
    }

    /// Reads a workload. Returns `None` if it does not exist.
    pub async fn read(
        &self,
        workload: &Workload,
        within: Duration,
    ) -> Result<Option<WorkloadObject>, KubernetesError> {
        let found = self.get(workload, within).await?;
        found.map(|object| parse(workload.kind, &object)).transpose()
    }

    /// Adds a lab to the workload's pod template.
    pub async fn put_in(
        &self,
        lab: &LabInWorkload,
        patch: &Value,
        within: Duration,
        cancel: CancellationToken,
    ) -> Result<WorkloadObject, KubernetesError> {
        let retry_policy = RetryPolicy { request: self.request_timeout, total: within, cancel };
        match self.apply(lab, patch, &retry_policy).await {
            // Another lab was put in meanwhile, and its operation has the label.
            Err(KubernetesError::Refused { reason: StatusReason::Conflict, message, .. })
                if message.contains(JOB_ID_LABEL) =>
            {
                self.apply(lab, &without_job_label(patch), &retry_policy).await
            }
            applied => applied,
        }
    }

    /// Takes all parts of a lab out of the workload's pod template, whatever their origin. Returns `None` if the
    /// workload is gone.
    pub async fn take_out(
        &self,
        lab: &LabInWorkload,
        within: Duration,
    ) -> Result<Option<WorkloadObject>, KubernetesError> {
        let Some(found) = self.get(&lab.workload, within).await? else { return Ok(None) };
        if found.metadata.uid.as_deref() != Some(lab.uid.as_str()) {
            return Ok(None);
        }
        let retry_policy = RetryPolicy::from_timeouts(self.request_timeout, within);
        let manages = |object: &DynamicObject| {
            let entries = object.metadata.managed_fields.iter().flatten();
            entries.into_iter().any(|entry| entry.manager.as_ref() == Some(&lab.manager()))
        };
        let mut left = parse(lab.workload.kind, &found)?;
        if manages(&found) {
            let remainder = remainder(&lab.workload, &lab.uid, &left.template, &lab.mark());
            match self.apply(lab, &remainder, &retry_policy).await {
                Err(error) if is_gone(&error) => return Ok(None),
                applied => left = applied?,
            }
        }
        let Some(mut patch) = leftovers(&left.template, &lab.mark(), &lab.installation_label) else {
            return Ok(Some(left));
        };
        if let Some(fields) = patch.as_object_mut() {
            fields.insert("metadata".to_owned(), serde_json::json!({ "uid": lab.uid }));
        }
        let api = self.api(&lab.workload);
        let action = format!("take the lab out of {}", lab.workload);
        let (params, patch) = (PatchParams::default(), Patch::Strategic(&patch));
        match retrying(&retry_policy, &action, || api.patch(lab.workload.name.as_str(), &params, &patch))
            .await
        {
            Ok(object) => parse(lab.workload.kind, &object.required()?).map(Some),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the pods with this label in the namespace of the workload.
    pub async fn pods(&self, workload: &Workload, label: &str) -> Result<Vec<Pod>, KubernetesError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), workload.namespace.as_str());
        list(&pods, label, &format!("list the pods of {workload}")).await
    }

    /// Deletes those revisions of the workload that contain the lab and have no pods any more, because `kubectl rollout
    /// undo` would bring back a lab whose Secret is gone. Returns true if no revision with the lab is left and none can
    /// appear. A controller that is behind may still make one of an earlier template, and a request that the service
    /// sent before it was killed may put the lab in late.
    pub async fn forget_revisions(
        &self,
        lab: &LabInWorkload,
        within: Duration,
    ) -> Result<bool, KubernetesError> {
        let (kind, plural) = match lab.workload.kind {
            WorkloadKind::Deployment => ("ReplicaSet", "replicasets"),
            WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
                ("ControllerRevision", "controllerrevisions")
            }
        };
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("apps", "v1", kind), plural);
        let revisions: Api<Readable<DynamicObject>> = self.beside(&lab.workload, &resource);
        let retry_policy = RetryPolicy::from_timeouts(self.request_timeout, within);
        // The workload is read before its revisions, so that the list contains everything that its controller had made
        // until then.
        let mark = lab.mark();
        let may_come = match self.read(&lab.workload, within).await? {
            Some(WorkloadObject { state, observed, .. }) => {
                state.uid == lab.uid && (!observed || state.labs.contains_key(&mark))
            }
            None => false,
        };
        let ours = |revision: DynamicObject| {
            let mut owners = revision.metadata.owner_references.iter().flatten();
            let is_ours = owners.any(|owner| owner.uid == lab.uid)
                && template(&revision).is_some_and(|template| is_leftover_revision(&template, &mark));
            is_ours.then(|| Leftover::from_revision(revision))
        };
        let action = format!("list the revisions of {}", lab.workload);
        let listed: Api<DynamicObject> = self.beside(&lab.workload, &resource);
        let ours = list_pages(&listed, "", REVISIONS_AT_ONCE, &action, ours).await?;
        let (unused, used): (Vec<_>, Vec<_>) = ours.into_iter().partition(|revision| revision.is_unused);
        let deleted = unused.iter().map(async |revision| {
            let name = revision.name.as_str();
            let preconditions = Preconditions {
                uid: revision.uid.clone(),
                resource_version: revision.resource_version.clone(),
            };
            let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
            let action = format!("delete {kind} {name}");
            match retrying(&retry_policy, &action, || revisions.delete(name, &params)).await {
                Ok(_) => Ok(true),
                Err(error) if is_gone(&error) => Ok(true),
                // The revision has changed: somebody may use it again.
                Err(KubernetesError::Refused { reason: StatusReason::Conflict, .. }) => Ok(false),
                Err(error) => Err(error),
            }
        });
        Ok(!may_come && used.is_empty() && try_join_all(deleted).await?.into_iter().all(|gone| gone))
    }

    async fn apply(
        &self,
        lab: &LabInWorkload,
        patch: &Value,
        retry_policy: &RetryPolicy,
    ) -> Result<WorkloadObject, KubernetesError> {
        let api = self.api(&lab.workload);
        // Never by force: fields that belong to others keep the values that their owners want.
        let (params, patch) = (PatchParams::apply(&lab.manager()), Patch::Apply(patch));
        let action = format!("apply a lab to {}", lab.workload);
        let applied = || api.patch(lab.workload.name.as_str(), &params, &patch);
        parse(lab.workload.kind, &retrying(retry_policy, &action, applied).await?.required()?)
    }

    async fn get(
        &self,
        workload: &Workload,
        within: Duration,
    ) -> Result<Option<DynamicObject>, KubernetesError> {
        let api = self.api(workload);
        let retry_policy = RetryPolicy::from_timeouts(self.request_timeout, within);
        let action = format!("read {workload}");
        let found = retrying(&retry_policy, &action, || api.get_opt(workload.name.as_str())).await?;
        Ok(found.map(Readable::required).transpose()?)
    }

    fn api(&self, workload: &Workload) -> Api<Readable<DynamicObject>> {
        self.beside(workload, &workload_resource(workload.kind))
    }

    /// The objects of a kind in the namespace of the workload.
    fn beside<K>(&self, workload: &Workload, resource: &ApiResource) -> Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        Api::namespaced_with(self.client.clone(), workload.namespace.as_str(), resource)
    }
}

/// The API resource of a kind of workloads.
pub fn workload_resource(kind: WorkloadKind) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("apps", "v1", kind.kind()), kind.plural())
}

/// Parses a workload as the API server has sent it.
pub fn parse(kind: WorkloadKind, object: &DynamicObject) -> Result<WorkloadObject, KubernetesError> {
    let malformed = |error| KubernetesError::Malformed(Box::new(error));
    let value = serde_json::to_value(object).map_err(malformed)?;
    WorkloadObject::read(kind, &value).map_err(malformed)
}

/// True if the workload of the request does not exist any more.
fn is_gone(error: &KubernetesError) -> bool {
    match error {
        KubernetesError::Refused { reason: StatusReason::NotFound, .. } => true,
        KubernetesError::Refused {
            reason: StatusReason::Conflict | StatusReason::Invalid, message, ..
        } => message.contains("uid mismatch") || message.contains("metadata.uid"),
        _ => false,
    }
}

/// The pod template of a revision: that of a `ReplicaSet`, or the one in the data of a `ControllerRevision`.
fn template(revision: &DynamicObject) -> Option<PodTemplateSpec> {
    let template =
        revision.data.pointer("/spec/template").or_else(|| revision.data.pointer("/data/spec/template"))?;
    PodTemplateSpec::deserialize(template).ok()
}

/// A revision with a lab that has ended.
struct Leftover {
    name: String,
    uid: Option<String>,
    resource_version: Option<String>,
    is_unused: bool,
}

impl Leftover {
    fn from_revision(revision: DynamicObject) -> Self {
        let is_unused = is_unused(&revision);
        let ObjectMeta { name, uid, resource_version, .. } = revision.metadata;
        Self { name: name.unwrap_or_default(), uid, resource_version, is_unused }
    }
}

/// True if no pod is made from the revision.
fn is_unused(revision: &DynamicObject) -> bool {
    let count = |path| revision.data.pointer(path).and_then(Value::as_u64).unwrap_or_default();
    count("/spec/replicas") == 0 && count("/status/replicas") == 0
}
