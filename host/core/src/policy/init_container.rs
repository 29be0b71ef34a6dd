use serde::{Deserialize, Serialize};

use super::{EnvVar, Mount, Resources};

/// The privileges of an init container. A policy names a profile, never a security context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecurityProfile {
    /// Runs like the lab: as its user, without capabilities.
    #[default]
    Restricted,
    /// May run as root, but not privileged. Needs the grant `run-as-root-init`.
    Baseline,
    /// Runs privileged. Needs the grant `privileged-init`.
    Privileged,
}

/// The starts of a lab at which an init container runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InitRun {
    /// At every start of the lab.
    #[default]
    Always,
    /// Until a lab of this user has become ready. The container must still be idempotent.
    UntilProvisioned,
}

/// A container that ends before the lab starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitContainer {
    /// Name within the pod, a DNS label.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// Replaces the image's entry point unless empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Replaces the image's arguments unless empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment of the container. It does not get that of the lab.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Mounts of the container. It does not get those of the lab.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Resources of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Security profile of the container.
    #[serde(default)]
    pub profile: SecurityProfile,
    /// Starts of the lab at which the container runs.
    #[serde(default)]
    pub run: InitRun,
    /// The paths of the lab's files that the container has, too. They follow from the policy's answer to `lab-files`.
    #[serde(skip)]
    pub files: Vec<String>,
}
