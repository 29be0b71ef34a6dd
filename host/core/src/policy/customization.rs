use serde::{Deserialize, Serialize};

use super::{
    AffinityPreset, EnvVar, Image, InitContainer, Mount, Pair, Resources, TimeLimits, Toleration, Volume,
};

/// The settings that one policy wants for a lab's pod. Answers are merged in the order of the chain; a later one wins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Customization {
    /// The lab's image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Environment of the lab, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Labels of the pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Pair>,
    /// Annotations of the pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Pair>,
    /// Resources of the lab's container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Taints that the pod tolerates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Labels that the node must have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_selector: Vec<Pair>,
    /// Preference among suitable nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<AffinityPreset>,
    /// Volumes of the pod, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Mounts of the lab's container, by path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Init containers, by name, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<InitContainer>,
    /// Replaces the image's entry point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Replaces the image's arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Absolute path of the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Time limits of this lab's operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limits: Option<TimeLimits>,
    /// The class of environment that the lab belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_class: Option<String>,
    /// A strategic merge patch of the Pod, as JSON. Needs the grant `pod-patch: [path]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_patch: Option<String>,
}
