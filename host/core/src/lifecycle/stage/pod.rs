//! The parts of a pod that the service keeps: those that decide a lab's stage and identify its lab. The whole pod
//! object is several times as large, and a service may keep ten thousand pods.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerPort, Pod, PodSpec, PodStatus};

use super::container::{Container, Role, not_empty};
use crate::names::WorkerGroupName;
use crate::names::lab::{JobId, PORT_NAME};
use crate::names::labels::{COMPONENT_LABEL, DASK_GROUP_LABEL, DASK_WORKER, JOB_ID_LABEL, SPAWN_LABEL};

/// The parts of a pod that the service keeps. Ephemeral containers are left out, because they do not affect the stage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObservedPod {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The pod's uid.
    pub uid: Option<String>,
    /// The resource version as a number. Of two states of one pod, the newer has the larger number (KEP-5504). A
    /// version that is not a number counts as the newest.
    pub version: u64,
    /// The uid of the record in the pod's label.
    pub spawn: Option<String>,
    /// The id of the operation that created the pod.
    pub operation: Option<JobId>,
    /// The latest time at which the pod will be gone; set if it is being deleted.
    pub deletion: Option<Timestamp>,
    /// The pod's IP address, once it has one.
    pub ip: Option<String>,
    /// The port on which the lab's program listens.
    pub port: Option<u16>,
    /// True for a worker of a Dask pool.
    pub is_worker: bool,
    /// The group of a worker, if its pool has several.
    pub group: Option<WorkerGroupName>,
    /// The volume claims that the pod mounts, generic ephemeral volumes included.
    pub claims: Box<[String]>,
    pub(super) created: Option<Timestamp>,
    pub(super) started: Option<Timestamp>,
    pub(super) phase: String,
    /// The pod's own reason: `Evicted`, `DeadlineExceeded`, `NodeLost`.
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    pub(super) has_node: bool,
    pub(super) restarts_never: bool,
    pub(super) conditions: Box<[PodCondition]>,
    pub(super) containers: Box<[Container]>,
}

/// The state of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodLife {
    /// The pod does not run yet.
    Waiting,
    /// The pod runs.
    Running,
    /// All containers of the pod have ended without an error.
    Succeeded,
    /// The pod has failed.
    Failed,
    /// The pod is being deleted.
    Deleting,
}

/// A condition of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodCondition {
    kind: ConditionKind,
    status: String,
    reason: Option<String>,
    pub(super) message: Option<String>,
}

/// The conditions that decide a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionKind {
    /// `DisruptionTarget`: the pod is being ended for a reason outside itself.
    DisruptionTarget,
    /// `PodScheduled`: the pod has a node.
    PodScheduled,
    /// `Ready`: all containers are ready.
    Ready,
}

impl From<&Pod> for ObservedPod {
    fn from(pod: &Pod) -> Self {
        let (meta, spec, status) = (&pod.metadata, pod.spec.as_ref(), pod.status.as_ref());
        let label = |name: &str| meta.labels.as_ref().and_then(|labels| labels.get(name)).cloned();
        let name = meta.name.clone().unwrap_or_default();
        let text = |read: fn(&PodStatus) -> Option<&String>| not_empty(status.and_then(read));
        let version = meta.resource_version.as_deref().and_then(|version| version.parse().ok());
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            uid: meta.uid.clone(),
            version: version.unwrap_or(u64::MAX),
            spawn: label(SPAWN_LABEL),
            operation: label(JOB_ID_LABEL).and_then(|id| id.parse().ok()),
            deletion: meta.deletion_timestamp.as_ref().map(|time| time.0),
            ip: text(|status| status.pod_ip.as_ref()),
            port: spec.and_then(lab_port),
            is_worker: label(COMPONENT_LABEL).as_deref() == Some(DASK_WORKER),
            group: label(DASK_GROUP_LABEL).and_then(|name| WorkerGroupName::parse(name).ok()),
            claims: spec.map(|spec| claims(&name, spec)).unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            started: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
            phase: text(|status| status.phase.as_ref()).unwrap_or_default(),
            reason: text(|status| status.reason.as_ref()),
            message: text(|status| status.message.as_ref()),
            has_node: spec.and_then(|spec| spec.node_name.as_deref()).is_some_and(|node| !node.is_empty()),
            restarts_never: spec.and_then(|spec| spec.restart_policy.as_deref()) == Some("Never"),
            conditions: status.map(conditions).unwrap_or_default(),
            containers: Container::all(spec, status).into(),
            name,
        }
    }
}

/// Returns the container port with the name that the service gives to the port of a lab.
fn lab_port(spec: &PodSpec) -> Option<u16> {
    let ports = spec.containers.iter().flat_map(|container| container.ports.iter().flatten());
    let named = |port: &&ContainerPort| port.name.as_deref() == Some(PORT_NAME);
    ports.into_iter().find(named).and_then(|port| u16::try_from(port.container_port).ok())
}

/// Returns the names of the claims that a pod mounts. The claim of an ephemeral volume is named after pod and volume.
fn claims(pod: &str, spec: &PodSpec) -> Box<[String]> {
    let volumes = spec.volumes.iter().flatten();
    let claims = volumes.filter_map(|volume| match &volume.persistent_volume_claim {
        Some(claim) => Some(claim.claim_name.clone()),
        None => volume.ephemeral.as_ref().map(|_| format!("{pod}-{}", volume.name)),
    });
    claims.collect()
}

fn conditions(status: &PodStatus) -> Box<[PodCondition]> {
    let known = status.conditions.iter().flatten().filter_map(|condition| {
        let kind = match condition.type_.as_str() {
            "DisruptionTarget" => ConditionKind::DisruptionTarget,
            "PodScheduled" => ConditionKind::PodScheduled,
            "Ready" => ConditionKind::Ready,
            _ => return None,
        };
        Some(PodCondition {
            kind,
            status: condition.status.clone(),
            reason: not_empty(condition.reason.as_ref()),
            message: condition.message.clone(),
        })
    });
    known.collect()
}

impl ObservedPod {
    /// Returns true if the pod is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.deletion.is_some()
    }

    /// Returns the state of the pod.
    pub fn life(&self) -> PodLife {
        match self.phase.as_str() {
            _ if self.is_deleting() => PodLife::Deleting,
            "Running" => PodLife::Running,
            "Succeeded" => PodLife::Succeeded,
            "Failed" => PodLife::Failed,
            _ => PodLife::Waiting,
        }
    }

    /// Returns the time at which the pod was created.
    pub fn created(&self) -> Option<Timestamp> {
        self.created
    }

    /// Returns true if the pod is being deleted, or was ended for a reason outside its containers.
    pub(super) fn was_taken_down(&self) -> bool {
        self.is_deleting() || (self.phase == "Failed" && self.reason.is_some())
    }

    pub(super) fn condition(&self, kind: ConditionKind) -> Option<&PodCondition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    pub(super) fn condition_is(&self, kind: ConditionKind, status: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == status)
    }

    /// Returns the reason of the condition, if it has this status.
    pub(super) fn condition_reason(&self, kind: ConditionKind, status: &str) -> Option<&str> {
        let condition = self.condition(kind).filter(|condition| condition.status == status)?;
        condition.reason.as_deref()
    }

    /// Returns the time at which the pod was started, according to its status.
    pub(super) fn began_at(&self) -> Option<Timestamp> {
        self.started.or(self.created)
    }

    pub(super) fn init_containers(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().filter(|container| container.role != Role::Main)
    }

    pub(super) fn main_containers(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().filter(|container| container.role == Role::Main)
    }

    pub(super) fn container(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|container| container.name == name)
    }
}
