//! A pod as the analysis reads it: nothing optional is left to be looked up twice.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::container::{Container, Role};

/// A pod and its containers, ephemeral ones left out: they never decide anything.
pub(super) struct PodView<'a> {
    pub(super) meta: &'a ObjectMeta,
    spec: Option<&'a PodSpec>,
    status: Option<&'a PodStatus>,
    pub(super) containers: Vec<Container<'a>>,
}

impl<'a> PodView<'a> {
    pub(super) fn new(pod: &'a Pod) -> Self {
        let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
        Self { meta: &pod.metadata, spec, status, containers: Container::all(spec, status) }
    }

    pub(super) fn phase(&self) -> &'a str {
        self.status.and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }

    /// The pod's own reason: `Evicted`, `DeadlineExceeded`, `NodeLost`.
    pub(super) fn reason(&self) -> Option<&'a str> {
        self.status.and_then(|status| status.reason.as_deref()).filter(|reason| !reason.is_empty())
    }

    pub(super) fn message(&self) -> Option<&'a str> {
        self.status.and_then(|status| status.message.as_deref()).filter(|message| !message.is_empty())
    }

    /// True if the pod is being deleted, or was ended for a reason outside its containers.
    pub(super) fn was_taken_down(&self) -> bool {
        self.meta.deletion_timestamp.is_some() || (self.phase() == "Failed" && self.reason().is_some())
    }

    pub(super) fn has_node(&self) -> bool {
        self.spec.and_then(|spec| spec.node_name.as_deref()).is_some_and(|node| !node.is_empty())
    }

    pub(super) fn condition(&self, kind: &str) -> Option<&'a PodCondition> {
        self.status?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
    }

    pub(super) fn condition_is(&self, kind: &str, status: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == status)
    }

    /// The reason of a condition that has this status.
    pub(super) fn condition_reason(&self, kind: &str, status: &str) -> Option<&'a str> {
        let condition = self.condition(kind).filter(|condition| condition.status == status)?;
        condition.reason.as_deref().filter(|reason| !reason.is_empty())
    }

    pub(super) fn restarts_never(&self) -> bool {
        self.spec.and_then(|spec| spec.restart_policy.as_deref()) == Some("Never")
    }

    /// When the pod began, as far as its status says.
    pub(super) fn began_at(&self) -> Option<Timestamp> {
        let started = self.status.and_then(|status| status.start_time.as_ref());
        started.or(self.meta.creation_timestamp.as_ref()).map(|time| time.0)
    }

    /// True if the pod mounts the volume claim of this name, by name or as a generic ephemeral volume.
    pub(super) fn claims(&self, claim: &str) -> bool {
        let pod = self.meta.name.as_deref().unwrap_or_default();
        self.spec.and_then(|spec| spec.volumes.as_ref()).into_iter().flatten().any(|volume| {
            let named =
                volume.persistent_volume_claim.as_ref().is_some_and(|source| source.claim_name == claim);
            let ephemeral = volume.ephemeral.is_some() && claim == format!("{pod}-{}", volume.name);
            named || ephemeral
        })
    }

    pub(super) fn init_containers(&self) -> impl Iterator<Item = &Container<'a>> {
        self.containers.iter().filter(|container| container.role != Role::Main)
    }

    pub(super) fn main_containers(&self) -> impl Iterator<Item = &Container<'a>> {
        self.containers.iter().filter(|container| container.role == Role::Main)
    }

    pub(super) fn container(&self, name: &str) -> Option<&Container<'a>> {
        self.containers.iter().find(|container| container.name == name)
    }
}
