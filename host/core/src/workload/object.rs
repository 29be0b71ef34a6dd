//! A workload as the API server returns it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde::Deserialize;
use serde_json::Value;

use super::{LabMark, WorkloadKind};
use crate::names::lab::JobId;

/// A workload as the API server returns it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadObject {
    /// The parts of it that the service keeps.
    pub state: WorkloadState,
    /// The pod template.
    pub template: PodTemplateSpec,
    /// True if the controller has seen the present template, and no longer creates revisions of an earlier one.
    pub observed: bool,
}

/// The parts of a workload that the service keeps in memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkloadState {
    /// The uid, which differs from that of an earlier workload of the same name.
    pub uid: String,
    /// The resource version as a number. A version that is not a number counts as the newest.
    pub version: u64,
    /// True while the workload is being deleted.
    pub deleting: bool,
    /// The desired number of pods; `None` for a `DaemonSet`, which has one on every node.
    pub replicas: Option<u32>,
    /// True if the owner has paused the rollouts.
    pub paused: bool,
    /// True if pods get a new template only when somebody deletes them.
    pub manual: bool,
    /// The ordinal from which on the pods of a `StatefulSet` get a new template.
    pub partition: u32,
    /// The labs in the pod template, each with the operation that added it; `None` if somebody has removed a part of
    /// the lab.
    pub labs: BTreeMap<LabMark, Option<JobId>>,
    /// The reason why the rollout does not continue, in the words of Kubernetes.
    pub trouble: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: String,
    resource_version: Option<String>,
    #[serde(default)]
    generation: i64,
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    replicas: Option<u32>,
    #[serde(default)]
    paused: bool,
    update_strategy: Option<UpdateStrategy>,
    template: PodTemplateSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateStrategy {
    r#type: Option<String>,
    rolling_update: Option<RollingUpdate>,
}

#[derive(Deserialize)]
struct RollingUpdate {
    partition: Option<u32>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    observed_generation: i64,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    r#type: String,
    status: String,
    message: Option<String>,
}

impl WorkloadObject {
    /// Reads a workload of this kind from its JSON.
    pub fn read(kind: WorkloadKind, object: &Value) -> Result<Self, serde_json::Error> {
        let Written { metadata, spec, status } = Written::deserialize(object)?;
        let observed = status.observed_generation >= metadata.generation;
        let version = metadata.resource_version.and_then(|version| version.parse().ok());
        let rolling = spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition);
        let on_delete = |strategy: &UpdateStrategy| strategy.r#type.as_deref() == Some("OnDelete");
        let state = WorkloadState {
            uid: metadata.uid,
            version: version.unwrap_or(u64::MAX),
            deleting: metadata.deletion_timestamp.is_some(),
            replicas: (kind != WorkloadKind::DaemonSet).then(|| spec.replicas.unwrap_or(1)),
            paused: spec.paused,
            manual: spec.update_strategy.as_ref().is_some_and(on_delete),
            partition: partition.unwrap_or_default(),
            labs: labs(&spec.template),
            trouble: trouble(status),
        };
        Ok(Self { state, template: spec.template, observed })
    }
}

/// Returns the labs in a pod template.
pub(super) fn labs(template: &PodTemplateSpec) -> BTreeMap<LabMark, Option<JobId>> {
    let (containers, others) = names(template);
    let labels = template.metadata.iter().flat_map(|metadata| metadata.labels.iter().flatten());
    let labelled: BTreeMap<LabMark, Option<JobId>> =
        labels.filter_map(|(key, value)| Some((LabMark::of_label(key)?, value.parse().ok()))).collect();
    let mut labs: BTreeMap<LabMark, Option<JobId>> =
        others.iter().filter_map(|name| LabMark::of_name(name)).map(|mark| (mark, None)).collect();
    for (mark, operation) in labelled {
        let complete = containers.contains(&mark.container().as_str());
        labs.insert(mark, operation.filter(|_| complete));
    }
    for mark in containers.iter().filter_map(|name| LabMark::of_name(name)) {
        labs.entry(mark).or_default();
    }
    labs
}

/// Returns the volumes of labs that containers of others mount. They do not belong to a lab any more.
pub(super) fn taken_volumes(template: &PodTemplateSpec) -> BTreeSet<&str> {
    let spec = template.spec.iter();
    let containers =
        spec.flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
    let taken = containers.flat_map(|container| {
        let owner = LabMark::of_name(&container.name);
        let mounts = container.volume_mounts.iter().flatten().map(|mount| mount.name.as_str());
        let devices = container.volume_devices.iter().flatten().map(|device| device.name.as_str());
        mounts
            .chain(devices)
            .filter(move |volume| LabMark::of_name(volume).is_some_and(|mark| Some(mark) != owner))
    });
    taken.collect()
}

/// Returns the names of a template's containers, and those of its init containers and of the volumes that are not
/// taken.
fn names(template: &PodTemplateSpec) -> (Vec<&str>, Vec<&str>) {
    let Some(spec) = &template.spec else { return (Vec::new(), Vec::new()) };
    let containers = spec.containers.iter().map(|container| container.name.as_str());
    let init = spec.init_containers.iter().flatten().map(|container| container.name.as_str());
    let taken = taken_volumes(template);
    let volumes = spec.volumes.iter().flatten().map(|volume| volume.name.as_str());
    (containers.collect(), init.chain(volumes.filter(|name| !taken.contains(name))).collect())
}

/// Returns the obstacle to the rollout, according to the workload's conditions.
fn trouble(status: Status) -> Option<String> {
    let hinders = |condition: &Condition| {
        matches!(
            (condition.r#type.as_str(), condition.status.as_str()),
            ("ReplicaFailure", "True") | ("Progressing", "False")
        )
    };
    let mut messages =
        status.conditions.into_iter().filter(hinders).filter_map(|condition| condition.message);
    messages.next()
}
