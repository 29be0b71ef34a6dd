//! The pod that pulls an image: it is bound to the node, and its container ends at once.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerState, LocalObjectReference, Pod, PodSecurityContext, PodSpec,
    PodStatus, ResourceRequirements, SeccompProfile, SecurityContext, Toleration,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::Pull;
use crate::images::ImageReference;
use crate::names::LabelValue;
use crate::names::labels::COMPONENT_LABEL;
use crate::values::digest::Digest;

/// Label: the installation of the service that pulls. These pods do not have the labels of labs, so they are never
/// mistaken for labs.
const PREPULL_LABEL: &str = "wasmspawner.io/prepull";
/// The value of [`COMPONENT_LABEL`].
const PREPULL_COMPONENT: &str = "prepull";
/// Annotation: the image. A webhook of the cluster may change the image of the container.
const IMAGE_ANNOTATION: &str = "wasmspawner.io/prepull-image";
/// Annotation: the cluster autoscaler may remove a node in spite of this pod.
const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
/// The largest length of a kubelet's message in characters; the rest is cut off.
const MAX_DETAIL_CHARS: usize = 300;

/// The UID and GID of the container, which does nothing: those of `nobody`.
const NOBODY: i64 = 65534;
const CONTAINER: &str = "pull";

/// Reasons of a waiting container whose image cannot be pulled (kubelet, `pkg/kubelet/images`).
const CANNOT_PULL: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];
/// Reasons of a waiting container whose image is on the node, but that cannot be started. The image need not contain
/// the program that ends at once.
const CANNOT_START: [&str; 4] =
    ["CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"];

/// Reason of a terminated container that never existed, such as that of a pod that was evicted before it started.
const NEVER_THERE: &str = "ContainerStatusUnknown";

/// Returns the label selector of the pods with which an installation pulls.
pub fn prepull_selector(instance: &LabelValue) -> String {
    format!("{PREPULL_LABEL}={instance}")
}

/// The common properties of all pull pods of an installation.
#[derive(Clone, Debug, PartialEq)]
pub struct PullPodTemplate {
    /// The installation.
    pub instance: LabelValue,
    /// The service's own pod as the owner: pull pods are deleted with it.
    pub owner: Option<OwnerReference>,
    /// A Secret of the service's namespace with which nodes authenticate at registries.
    pub pull_secret: Option<String>,
    /// The time after which the kubelet ends the pod by itself.
    pub time_limit: SignedDuration,
}

impl PullPodTemplate {
    /// Returns the pod for a pull. The same pull always gets the same name.
    pub fn pod(&self, pull: &Pull) -> Pod {
        let labels = [(COMPONENT_LABEL, PREPULL_COMPONENT), (PREPULL_LABEL, self.instance.as_str())];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let annotations = [(IMAGE_ANNOTATION, pull.image.to_string()), (SAFE_TO_EVICT, "true".to_owned())];
        let annotations = annotations.map(|(key, value)| (key.to_owned(), value));
        let secret = self.pull_secret.iter().map(|name| LocalObjectReference { name: name.clone() });
        Pod {
            metadata: ObjectMeta {
                name: Some(name_of(pull, &self.instance)),
                labels: Some(BTreeMap::from(labels)),
                annotations: Some(BTreeMap::from(annotations)),
                owner_references: self.owner.clone().map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec {
                node_name: Some(pull.node.clone()),
                containers: vec![container(&pull.image)],
                image_pull_secrets: Some(secret.collect::<Vec<_>>()).filter(|secrets| !secrets.is_empty()),
                restart_policy: Some("Never".to_owned()),
                active_deadline_seconds: Some(self.time_limit.as_secs().max(1)),
                termination_grace_period_seconds: Some(0),
                automount_service_account_token: Some(false),
                enable_service_links: Some(false),
                // Nodes with taints that labs do not tolerate pull nothing.
                tolerations: Some(vec![Toleration {
                    operator: Some("Exists".to_owned()),
                    ..Toleration::default()
                }]),
                security_context: Some(PodSecurityContext {
                    run_as_user: Some(NOBODY),
                    run_as_group: Some(NOBODY),
                    run_as_non_root: Some(true),
                    seccomp_profile: Some(SeccompProfile {
                        type_: "RuntimeDefault".to_owned(),
                        ..SeccompProfile::default()
                    }),
                    ..PodSecurityContext::default()
                }),
                ..PodSpec::default()
            }),
            status: None,
        }
    }
}

fn name_of(Pull { node, image }: &Pull, instance: &LabelValue) -> String {
    let digest = Digest::sha256(format!("{instance}\n{node}\n{image}").as_bytes());
    format!("wasmspawner-pull-{}", digest.short_hex(20))
}

fn container(image: &ImageReference) -> Container {
    let amounts = |amounts: &[(&str, &str)]| {
        let amounts = amounts.iter();
        amounts.map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned()))).collect()
    };
    Container {
        name: CONTAINER.to_owned(),
        image: Some(image.to_string()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some(vec!["true".to_owned()]),
        resources: Some(ResourceRequirements {
            requests: Some(amounts(&[("cpu", "1m"), ("memory", "8Mi")])),
            limits: Some(amounts(&[("cpu", "100m"), ("memory", "64Mi")])),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

/// A pod that pulls an image, as the cluster reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullPod {
    /// The name of the pod.
    pub name: String,
    /// The uid of the pod.
    pub uid: String,
    /// The pull that the pod carries out.
    pub pull: Pull,
    /// The time at which the pull began.
    pub since: Timestamp,
    /// The state of the pull.
    pub state: PullState,
    /// True if the pod is being deleted.
    pub is_being_deleted: bool,
}

/// The state of a pull.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullState {
    /// The pull has no result yet.
    Pulling,
    /// The node has the image.
    Pulled,
    /// The node cannot pull the image, for this reason.
    Failed(String),
}

impl PullPod {
    /// Reads a pod; `None` if it was not created by this installation. The label alone is not proof, because anybody
    /// can write it: the pod must also have the name that follows from its node and its annotation.
    pub fn observed(pod: &Pod, instance: &LabelValue) -> Option<Self> {
        let (metadata, spec) = (&pod.metadata, pod.spec.as_ref()?);
        let image = metadata.annotations.as_ref()?.get(IMAGE_ANNOTATION)?.parse().ok()?;
        let pull = Pull { node: spec.node_name.clone()?, image };
        let name = metadata.name.clone().filter(|name| *name == name_of(&pull, instance))?;
        Some(Self {
            name,
            uid: metadata.uid.clone()?,
            pull,
            since: metadata.creation_timestamp.as_ref()?.0,
            state: pod.status.as_ref().map_or(PullState::Pulling, PullState::observed),
            is_being_deleted: metadata.deletion_timestamp.is_some(),
        })
    }
}

impl PullState {
    fn observed(status: &PodStatus) -> Self {
        let mut containers = status.container_statuses.iter().flatten();
        let container = containers.find(|container| container.name == CONTAINER);
        let state = container.and_then(|container| container.state.as_ref());
        match (status.phase.as_deref(), state) {
            (Some("Succeeded"), _) => Self::Pulled,
            (_, Some(ContainerState { terminated: Some(ended), .. }))
                if ended.reason.as_deref() == Some(NEVER_THERE) =>
            {
                Self::of_phase(status)
            }
            (
                _,
                Some(ContainerState { running: Some(_), .. } | ContainerState { terminated: Some(_), .. }),
            ) => Self::Pulled,
            (_, Some(ContainerState { waiting: Some(waiting), .. })) => {
                let reason = waiting.reason.as_deref().unwrap_or_default();
                if CANNOT_START.contains(&reason) {
                    Self::Pulled
                } else if CANNOT_PULL.contains(&reason) {
                    Self::Failed(sentence(reason, waiting.message.as_deref()))
                } else {
                    Self::of_phase(status)
                }
            }
            _ => Self::of_phase(status),
        }
    }

    /// Reads the state from the pod's phase. A pod that the node refuses, such as one for which it has no room, has no
    /// container with a reason.
    fn of_phase(status: &PodStatus) -> Self {
        if status.phase.as_deref() != Some("Failed") {
            return Self::Pulling;
        }
        Self::Failed(sentence(status.reason.as_deref().unwrap_or("Failed"), status.message.as_deref()))
    }
}

/// Returns the kubelet's reason and message on one line.
fn sentence(reason: &str, message: Option<&str>) -> String {
    let text = match message.map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    };
    let visible = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let cut: String = visible.clone().take(MAX_DETAIL_CHARS).collect();
    if visible.count() > MAX_DETAIL_CHARS { format!("{cut}...") } else { cut }
}
