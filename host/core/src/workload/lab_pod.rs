//! A pod of a workload, reduced to one of its labs.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{LabMark, Workload, WorkloadKind};
use crate::lifecycle::stage::ObservedPod;
use crate::names::lab::JobId;

/// A pod of a workload, reduced to the containers of one of its labs, so that the stage is that of the lab and not that
/// of the service beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabPod {
    /// The mark of the lab.
    pub mark: LabMark,
    /// The pod, with the lab's containers alone.
    pub pod: ObservedPod,
    /// True if the lab's container is ready.
    pub is_ready: bool,
    /// The kind and uid of the pod's controller.
    controller: Option<(String, String)>,
}

/// The largest number of labs that are read from a pod. Anybody who may write workloads may write thousands of labels.
const MAX_LABS_OF_POD: usize = 64;

/// For each `ReplicaSet` with labs, by its uid, the uid of the `Deployment` that controls it.
pub type Revisions = BTreeMap<String, String>;

/// Returns the uid of the object's controller, if the controller is of this kind.
pub fn controller_uid(metadata: &ObjectMeta, kind: &str) -> Option<String> {
    controller(metadata).filter(|owner| owner.kind == kind).map(|owner| owner.uid.clone())
}

/// Returns the object's controller. Kubernetes allows at most one.
fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

impl LabPod {
    /// Returns the labs in a pod, each of which has a label.
    pub fn all(pod: &Pod) -> Vec<Self> {
        let labels = pod.metadata.labels.iter().flatten();
        let marks = labels.filter_map(|(key, _)| LabMark::of_label(key)).take(MAX_LABS_OF_POD);
        marks.map(|mark| Self::from_pod(pod, mark)).collect()
    }

    fn from_pod(pod: &Pod, mark: LabMark) -> Self {
        let mut seen = pod.clone();
        let operation = pod.metadata.labels.as_ref().and_then(|labels| labels.get(&mark.label()));
        let operation: Option<JobId> = operation.and_then(|id| id.parse().ok());
        if let Some(spec) = &mut seen.spec {
            spec.containers.retain(|container| mark.owns(&container.name));
            if let Some(init) = &mut spec.init_containers {
                init.retain(|container| mark.owns(&container.name));
            }
        }
        let container = mark.container();
        let mut is_ready = false;
        if let Some(status) = &mut seen.status {
            for statuses in
                [&mut status.container_statuses, &mut status.init_container_statuses].into_iter().flatten()
            {
                statuses.retain(|status| mark.owns(&status.name));
            }
            let ready = |status: &ContainerStatus| status.name == container && status.ready;
            is_ready = status.container_statuses.iter().flatten().any(ready);
            // A pod is ready when all its containers are ready. A lab is ready when its own container is.
            if let Some(condition) = status.conditions.iter_mut().flatten().find(|one| one.type_ == "Ready") {
                *condition = PodCondition {
                    status: if is_ready { "True" } else { "False" }.to_owned(),
                    ..PodCondition { type_: "Ready".to_owned(), ..PodCondition::default() }
                };
            }
        }
        let controller = controller(&pod.metadata).map(|owner| (owner.kind.clone(), owner.uid.clone()));
        let mut pod = ObservedPod::from(&seen);
        pod.operation = operation;
        Self { mark, pod, is_ready, controller }
    }

    /// Returns true if the pod was created by the workload with this uid. Labels and names are not proof, because
    /// anybody can write them.
    pub fn is_of(&self, workload: &Workload, uid: &str, revisions: &Revisions) -> bool {
        let Some((kind, owner)) = &self.controller else { return false };
        match workload.kind {
            WorkloadKind::Deployment => {
                kind == "ReplicaSet" && revisions.get(owner).is_some_and(|deployment| deployment == uid)
            }
            WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
                kind == workload.kind.kind() && owner == uid
            }
        }
    }

    /// Returns true if an object with this uid controls the pod.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller.as_ref().is_some_and(|(_, owner)| owner == uid)
    }

    /// Returns true while the pod may run the lab of this operation.
    fn lives(&self, operation: JobId) -> bool {
        self.pod.operation == Some(operation)
            && !matches!(
                self.pod.life(),
                crate::lifecycle::stage::PodLife::Deleting
                    | crate::lifecycle::stage::PodLife::Succeeded
                    | crate::lifecycle::stage::PodLife::Failed
            )
    }

    fn age(&self) -> (Option<Timestamp>, &str) {
        (self.pod.created(), &self.pod.name)
    }
}

/// Chooses the pod of the lab: the one with the uid `kept` while it lives; otherwise the newest in which the lab is
/// ready, or else the newest.
pub fn choose<'a>(pods: &'a [Arc<LabPod>], operation: JobId, kept: Option<&str>) -> Option<&'a Arc<LabPod>> {
    let living = || pods.iter().filter(|pod| pod.lives(operation));
    let same = |pod: &&Arc<LabPod>| kept.is_some() && pod.pod.uid.as_deref() == kept;
    living()
        .find(same)
        .or_else(|| living().filter(|pod| pod.is_ready).max_by_key(|pod| pod.age()))
        .or_else(|| living().max_by_key(|pod| pod.age()))
}
